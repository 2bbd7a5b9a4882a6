#!/bin/bash
# What spark-kubernetes expects of an executor's image; anything else is run as it is.
set -e
if [ "${1:-}" != executor ]; then
  exec tini -s -- "$@"
fi
options=()
while IFS='=' read -r _ value; do
  options+=("$value")
done < <(env | grep '^SPARK_JAVA_OPT_' | sort -t_ -k4 -n)
exec tini -s -- java "${options[@]}" -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" -cp "$SPARK_HOME/jars/*" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" \
  --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"

# Starts Redis; before that, what a killed Redis left half written at the end of its file is cut off. Redis 6.2 and 7.0
# cut it inside a transaction, and the next death then costs all that was answered since. Damaged elsewhere it is left
# as it is: Redis refuses it.
file=/data/appendonlydir/appendonly.aof.manifest
[ -f "$file" ] || file=/data/appendonly.aof
if [ -f "$file" ] && command -v redis-check-aof > /dev/null && ! said=$(redis-check-aof "$file"); then
  echo "$said"
  place=$(echo "$said" | sed -n 's/^0x *\([0-9a-f]*\):.*/\1/p' | tail -n 1)
  size=$(echo "$said" | sed -n 's/.*AOF analyzed:.* size=\([0-9]*\),.*/\1/p' | tail -n 1)
  if [ $((${size:-32} - 0x${place:-0})) -lt 32 ] || echo "$said" | grep -qE 'Expected to read|Reached EOF before reading EXEC'; then
    echo y | redis-check-aof --fix "$file"
  fi
fi
exec redis-server /etc/redis/redis.conf

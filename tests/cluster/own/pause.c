/* What keeps a pod's namespaces open: sleeps until it is told to end, and reaps the orphans of a shared process namespace. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void down(int signal) {
  (void)signal;
  _exit(0);
}

static void reap(int signal) {
  (void)signal;
  while (waitpid(-1, 0, WNOHANG) > 0) {
  }
}

int main(void) {
  signal(SIGINT, down);
  signal(SIGTERM, down);
  signal(SIGCHLD, reap);
  for (;;) pause();
}

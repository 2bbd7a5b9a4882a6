/* The bound that `make bench` measures the core against: what plain C makes of the same join on the same rows.
 *
 * A symmetric hash join of two streams of 64-byte tuples, each in order of time, read in order of arrival. Per stream one
 * ring of tuples (the window) and one open-addressing index (linear probing, backward-shift delete) from a key to its
 * newest tuple; older tuples of the key are chained newest to oldest. A pair is a result iff keys are equal and
 * |ts1 - ts2| <= window. It relies on the order of time: a chain ends at the first expired tuple.
 *
 *   gcc -O3 -march=native -pthread shj.c -o shj
 *   shj DIR WINDOW_US THREADS PREFETCH FULL MAX_PAIRS
 *
 * DIR holds s1.raw and s2.raw, packed (ts int64 us, key int64, 48 bytes). Before the clock starts the input is loaded,
 * and the windows and the output buffer are allocated and touched. FULL 0 writes (id1, id2), 16 bytes per pair, an id
 * being the tuple's position in its stream; FULL 1 also writes both tuples, 128 bytes per pair. MAX_PAIRS is the size of
 * the output buffer, of each thread. THREADS 2: both read the whole input, each keeps the keys of its half, nothing is
 * shared. The join is run once, from empty windows, for every line on standard input (so that it can take turns with
 * another program), and answers with one JSON object; the checksum is the sum of (id1 * 1000003 + id2 * 7919) % 1000000007. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

typedef struct { int64_t ts, key; uint8_t payload[48]; } tuple;
typedef struct { uint32_t head1, pad; int64_t key; } entry;  /* head1: sequence number of the newest tuple + 1; 0: empty */
typedef struct { uint32_t a, b; uint64_t pad; } pair;

typedef struct {
  tuple *ring; uint32_t *prev, *id; uint32_t ring_mask;
  uint32_t head, tail;  /* sequence numbers [tail, head) are alive */
  entry *table; uint32_t table_mask;
} window;

typedef struct { int thread; pair *out; tuple *full_out; uint64_t pairs; uint32_t capacity[2]; } job;

static tuple *stream[2];
static uint32_t rows[2];
static int64_t window_us;
static int threads, prefetch, full;
static pthread_barrier_t barrier;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static inline uint64_t hash(int64_t key) {
  uint64_t x = (uint64_t)key * 0x9E3779B97F4A7C15ull;
  return x ^ (x >> 32);
}

static void die(const char *what) { perror(what); exit(1); }

/* Touched memory in huge pages, where the machine has them. */
static void *big(size_t bytes) {
  size_t page = 2u << 20;
  bytes = (bytes + page - 1) / page * page;
  void *p = aligned_alloc(page, bytes);
  if (!p) die("aligned_alloc");
  madvise(p, bytes, MADV_HUGEPAGE);
  memset(p, 0, bytes);
  return p;
}

static void window_init(window *w, uint32_t capacity) {
  w->ring = big((size_t)capacity * sizeof(tuple));
  w->prev = big((size_t)capacity * 4);
  w->id = big((size_t)capacity * 4);
  w->ring_mask = capacity - 1;
  w->head = w->tail = 0;
  w->table = big((size_t)capacity * 2 * sizeof(entry));
  w->table_mask = capacity * 2 - 1;
}

static void window_free(window *w) { free(w->ring); free(w->prev); free(w->id); free(w->table); }

/* The place of the key, or of the empty entry where it belongs. */
static inline uint32_t find(window *w, int64_t key) {
  uint32_t i = (uint32_t)hash(key) & w->table_mask;
  while (w->table[i].head1 && w->table[i].key != key) i = (i + 1) & w->table_mask;
  return i;
}

static inline void delete(window *w, uint32_t i) {
  for (uint32_t j = i;;) {
    j = (j + 1) & w->table_mask;
    if (!w->table[j].head1) break;
    uint32_t home = (uint32_t)hash(w->table[j].key) & w->table_mask;
    if (((j - home) & w->table_mask) >= ((j - i) & w->table_mask)) { w->table[i] = w->table[j]; i = j; }
  }
  w->table[i].head1 = 0;
}

static inline void expire(window *w, int64_t before) {
  while (w->tail != w->head) {
    uint32_t r = w->tail & w->ring_mask;
    if (w->ring[r].ts >= before) break;
    uint32_t i = find(w, w->ring[r].key);
    if (w->table[i].head1 == w->tail + 1) delete(w, i);  /* the newest of its key: the key leaves the index */
    w->tail++;
  }
}

static inline void insert(window *w, const tuple *x, uint32_t id) {
  uint32_t sequence = w->head++, r = sequence & w->ring_mask;
  w->ring[r] = *x;
  w->id[r] = id;
  uint32_t i = find(w, x->key);
  w->prev[r] = w->table[i].head1;
  w->table[i].key = x->key;
  w->table[i].head1 = sequence + 1;
}

#define AHEAD 16
#define MINE(key) (threads == 1 || (int)(hash(key) >> 63) == thread)

/* Index entries of the tuple AHEAD rows away; the newest partner of the one half as far; the next key to expire.
 * always_inline is needed: gcc takes a function that only prefetches for one without effect, and drops the call. */
static inline __attribute__((always_inline)) void fetch(window w[2], int s, uint32_t next, int thread) {
  uint32_t h = (uint32_t)hash(stream[s][next + AHEAD].key);
  __builtin_prefetch(&w[0].table[h & w[0].table_mask]);
  __builtin_prefetch(&w[1].table[h & w[1].table_mask]);
  int64_t near = stream[s][next + AHEAD / 2].key;
  if (MINE(near)) {
    window *v = &w[1 - s];
    entry *e = &v->table[(uint32_t)hash(near) & v->table_mask];
    if (e->head1) {
      uint32_t r = (e->head1 - 1) & v->ring_mask;
      __builtin_prefetch(&v->ring[r]);
      __builtin_prefetch(&v->prev[r]);
      __builtin_prefetch(&v->id[r]);
    }
  }
  if (w[s].tail + AHEAD < w[s].head) {
    uint32_t q = (uint32_t)hash(w[s].ring[(w[s].tail + AHEAD) & w[s].ring_mask].key);
    __builtin_prefetch(&w[s].table[q & w[s].table_mask]);
  }
}

static void *run(void *argument) {
  job *j = argument;
  int thread = j->thread;
  window w[2];
  for (int s = 0; s < 2; s++) window_init(&w[s], j->capacity[s]);
  pthread_barrier_wait(&barrier);  /* the clock starts */
  pair *out = j->out;
  tuple *full_out = j->full_out;
  uint64_t n = 0;
  uint32_t next[2] = {0, 0};
  while (next[0] < rows[0] || next[1] < rows[1]) {
    int s = next[1] >= rows[1] || (next[0] < rows[0] && stream[0][next[0]].ts <= stream[1][next[1]].ts) ? 0 : 1;
    uint32_t id = next[s]++;
    const tuple *x = &stream[s][id];
    if (prefetch && next[s] + AHEAD < rows[s]) fetch(w, s, next[s], thread);
    if (!MINE(x->key)) continue;
    window *v = &w[1 - s];
    expire(&w[s], x->ts - window_us);
    expire(v, x->ts - window_us);
    insert(&w[s], x, id);
    uint32_t head1 = v->table[find(v, x->key)].head1;
    while (head1) {
      uint32_t sequence = head1 - 1, r = sequence & v->ring_mask;
      if ((int32_t)(sequence - v->tail) < 0) break;
      if (full) { full_out[2 * n + s] = *x; full_out[2 * n + 1 - s] = v->ring[r]; }
      out[n].a = s ? v->id[r] : id;
      out[n].b = s ? id : v->id[r];
      n++;
      head1 = v->prev[r];
    }
  }
  j->pairs = n;
  pthread_barrier_wait(&barrier);  /* the clock stops */
  for (int s = 0; s < 2; s++) window_free(&w[s]);
  return NULL;
}

static void load(const char *dir, int s) {
  char path[4096];
  snprintf(path, sizeof path, "%s/s%d.raw", dir, s + 1);
  FILE *f = fopen(path, "rb");
  struct stat st;
  if (!f || fstat(fileno(f), &st)) die(path);
  stream[s] = big(st.st_size);
  if (fread(stream[s], 1, st.st_size, f) != (size_t)st.st_size) die(path);
  fclose(f);
  rows[s] = st.st_size / sizeof(tuple);
}

/* The most tuples that the window of a stream ever holds, as a power of two with some room. */
static uint32_t capacity_of(int s) {
  uint32_t most = 0, tail = 0, power = 1;
  for (uint32_t i = 0; i < rows[s]; i++) {
    while (stream[s][tail].ts < stream[s][i].ts - window_us) tail++;
    if (i - tail + 1 > most) most = i - tail + 1;
  }
  while (power < most + 64) power <<= 1;
  return power;
}

int main(int argc, char **argv) {
  if (argc != 7) { fprintf(stderr, "usage: shj DIR WINDOW_US THREADS PREFETCH FULL MAX_PAIRS\n"); return 2; }
  window_us = atoll(argv[2]); threads = atoi(argv[3]); prefetch = atoi(argv[4]); full = atoi(argv[5]);
  uint64_t max_pairs = strtoull(argv[6], NULL, 10);
  for (int s = 0; s < 2; s++) load(argv[1], s);
  job jobs[2] = {0};
  for (int t = 0; t < threads; t++) {  /* skewed keys may put nearly all into one half: full size for each thread */
    jobs[t] = (job){t, big(max_pairs * sizeof(pair)), full ? big(max_pairs * 2 * sizeof(tuple)) : NULL, 0, {0, 0}};
    for (int s = 0; s < 2; s++) jobs[t].capacity[s] = capacity_of(s);
  }
  for (char line[64]; fgets(line, sizeof line, stdin);) {
    pthread_t ids[2];
    pthread_barrier_init(&barrier, NULL, threads + 1);
    for (int t = 0; t < threads; t++) pthread_create(&ids[t], NULL, run, &jobs[t]);
    pthread_barrier_wait(&barrier);
    double start = now();
    pthread_barrier_wait(&barrier);
    double seconds = now() - start;
    uint64_t pairs = 0, checksum = 0;
    for (int t = 0; t < threads; t++) {
      pthread_join(ids[t], NULL);
      pairs += jobs[t].pairs;
      for (uint64_t i = 0; i < jobs[t].pairs; i++)
        checksum += ((uint64_t)jobs[t].out[i].a * 1000003u + (uint64_t)jobs[t].out[i].b * 7919u) % 1000000007u;
    }
    printf("{\"tuples\": %" PRIu32 ", \"seconds\": %.6f, \"pairs\": %" PRIu64 ", \"checksum\": %" PRIu64 "}\n",
           rows[0] + rows[1], seconds, pairs, checksum);
    fflush(stdout);
    pthread_barrier_destroy(&barrier);
  }
  return 0;
}

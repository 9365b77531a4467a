/* The bare traversal: what any breadth-first search must do at least. For every source, read the edges of all nodes
   within `hops` - 1 hops, with a visited stamp and a queue, and do nothing else. Plain C, one stamp array per thread. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  const int64_t *indptr;
  const int32_t *indices;
  int64_t num_nodes;
  const int64_t *sources;
  int64_t num_sources;
  int hops;
  int64_t *next;
  int64_t reached;
} work_t;

static void *work(void *argument) {
  work_t *w = argument;
  int32_t *stamp = calloc(w->num_nodes, sizeof *stamp);
  int32_t *queue = malloc(w->num_nodes * sizeof *queue);
  int64_t reached = 0;
  for (;;) {
    int64_t first_source = __atomic_fetch_add(w->next, 64, __ATOMIC_RELAXED);
    if (first_source >= w->num_sources) break;
    int64_t last_source = first_source + 64 < w->num_sources ? first_source + 64 : w->num_sources;
    for (int64_t i = first_source; i < last_source; i++) {
      int32_t mark = (int32_t)(i + 1);
      int64_t first = 0, last = 1;
      queue[0] = (int32_t)w->sources[i];
      stamp[queue[0]] = mark;
      for (int k = 0; k < w->hops; k++) {
        int64_t end = last;
        for (; first < end; first++) {
          int32_t u = queue[first];
          for (int64_t e = w->indptr[u]; e < w->indptr[u + 1]; e++) {
            int32_t v = w->indices[e];
            if (stamp[v] != mark) {
              stamp[v] = mark;
              queue[last++] = v;
            }
          }
        }
      }
      reached += last - 1;
    }
  }
  free(stamp);
  free(queue);
  w->reached = reached;
  return NULL;
}

int64_t traverse(const int64_t *indptr, const int32_t *indices, int64_t num_nodes, const int64_t *sources,
                 int64_t num_sources, int hops, int threads) {
  pthread_t handles[64];
  work_t jobs[64];
  int64_t next = 0, reached = 0;
  for (int t = 0; t < threads; t++) {
    jobs[t] = (work_t){indptr, indices, num_nodes, sources, num_sources, hops, &next, 0};
    pthread_create(&handles[t], NULL, work, &jobs[t]);
  }
  for (int t = 0; t < threads; t++) {
    pthread_join(handles[t], NULL);
    reached += jobs[t].reached;
  }
  return reached;
}

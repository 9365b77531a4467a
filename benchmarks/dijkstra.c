/* The bare shortest paths: what any search by length must do at least. For every source, settle all nodes within a
   radius with a binary heap (a node may wait in it several times) and an array of distances, and do nothing else.
   Plain C, one heap and one array per thread. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  double distance;
  int32_t node;
} entry_t;

typedef struct {
  const int64_t *indptr;
  const int32_t *indices;
  const double *lengths;
  int64_t num_nodes;
  const int64_t *sources;
  int64_t num_sources;
  double radius;
  int64_t *next;
  int64_t reached;
} work_t;

static void push(entry_t *heap, int64_t at, entry_t entry) {
  while (at > 0) {
    int64_t above = (at - 1) / 2;
    if (heap[above].distance <= entry.distance) break;
    heap[at] = heap[above];
    at = above;
  }
  heap[at] = entry;
}

static entry_t pop(entry_t *heap, int64_t size) {
  entry_t top = heap[0], last = heap[size];
  int64_t at = 0;
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && heap[child + 1].distance < heap[child].distance) child++;
    if (heap[child].distance >= last.distance) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return top;
}

static void *work(void *argument) {
  work_t *w = argument;
  double *distances = malloc(w->num_nodes * sizeof *distances);
  int32_t *touched = malloc(w->num_nodes * sizeof *touched);
  entry_t *heap = malloc((w->indptr[w->num_nodes] + 1) * sizeof *heap);
  for (int64_t v = 0; v < w->num_nodes; v++) distances[v] = INFINITY;
  int64_t reached = 0;
  for (;;) {
    int64_t first_source = __atomic_fetch_add(w->next, 64, __ATOMIC_RELAXED);
    if (first_source >= w->num_sources) break;
    int64_t last_source = first_source + 64 < w->num_sources ? first_source + 64 : w->num_sources;
    for (int64_t i = first_source; i < last_source; i++) {
      int32_t source = (int32_t)w->sources[i];
      int64_t size = 1, met = 1;
      heap[0] = (entry_t){0.0, source};
      distances[source] = 0.0;
      touched[0] = source;
      while (size > 0) {
        entry_t top = pop(heap, --size);
        if (top.distance > distances[top.node]) continue;
        for (int64_t e = w->indptr[top.node]; e < w->indptr[top.node + 1]; e++) {
          int32_t v = w->indices[e];
          double along = top.distance + w->lengths[e];
          if (along <= w->radius && along < distances[v]) {
            if (distances[v] == INFINITY) touched[met++] = v;
            distances[v] = along;
            push(heap, size++, (entry_t){along, v});
          }
        }
      }
      for (int64_t k = 0; k < met; k++) distances[touched[k]] = INFINITY;
      reached += met - 1;
    }
  }
  free(distances);
  free(touched);
  free(heap);
  w->reached = reached;
  return NULL;
}

int64_t settle(const int64_t *indptr, const int32_t *indices, const double *lengths, int64_t num_nodes,
               const int64_t *sources, int64_t num_sources, double radius, int threads) {
  pthread_t handles[64];
  work_t jobs[64];
  int64_t next = 0, reached = 0;
  for (int t = 0; t < threads; t++) {
    jobs[t] = (work_t){indptr, indices, lengths, num_nodes, sources, num_sources, radius, &next, 0};
    pthread_create(&handles[t], NULL, work, &jobs[t]);
  }
  for (int t = 0; t < threads; t++) {
    pthread_join(handles[t], NULL);
    reached += jobs[t].reached;
  }
  return reached;
}

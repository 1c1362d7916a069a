package devicepipe

// Loading is a job whose threads load items into a queue, from which a device takes a batch after the other to train.
type Loading struct {
	Threads      int
	ItemSeconds  float64 // of an item on one of the threads
	Room         int     // items that the queue holds, at least a batch
	Batch        int
	TrainSeconds float64 // of a batch
	Batches      int
}

// Loaded is the outcome of loading.
type Loaded struct {
	Seconds float64 `json:"latency_s"`
	// FullShare is the share of the threads' time in which they wait with an item for room in the queue, and
	// EmptyShare that of the device in which it waits for a batch, from the end of its first.
	FullShare  float64 `json:"threads_wait"`
	EmptyShare float64 `json:"training_waits"`
	Most       int     `json:"most_items"` // in the queue
}

// Simulate runs the job. A thread begins the next item when the queue has taken the one before; items enter in the
// order in which threads began them.
func (l Loading) Simulate() (Loaded, error) {
	switch {
	case l.Threads < 1 || l.Batch < 1 || l.Batches < 1 || l.Room < l.Batch:
		return Loaded{},
			bad("found %d threads, room for %d items, %d batches of %d, expected at least one of each and room for a batch",
				l.Threads, l.Room, l.Batches, l.Batch)
	case !(l.ItemSeconds >= 0 && l.TrainSeconds >= 0 && l.ItemSeconds+l.TrainSeconds < 1e12):
		return Loaded{}, bad("found %v s an item and %v s a batch, expected times", l.ItemSeconds, l.TrainSeconds)
	}
	n := l.Batch * l.Batches
	put, take := make([]float64, n), make([]float64, l.Batches)
	full, empty, end := 0.0, 0.0, 0.0
	gone := 0 // batches taken by the time that an item is put
	var out Loaded
	for i := range put {
		done := l.ItemSeconds
		if i >= l.Threads {
			done += put[i-l.Threads]
		}
		put[i] = done
		if i > 0 {
			put[i] = max(put[i], put[i-1])
		}
		if over := i - l.Room; over >= 0 { // once the batch is taken that has the item in whose place this one comes
			put[i] = max(put[i], take[over/l.Batch])
		}
		full += put[i] - done
		b := i / l.Batch
		for gone < b && take[gone] <= put[i] {
			gone++
		}
		out.Most = max(out.Most, i+1-gone*l.Batch)
		if i%l.Batch == l.Batch-1 {
			take[b] = max(put[i], end)
			if b > 0 {
				empty += take[b] - end
			}
			end = take[b] + l.TrainSeconds
		}
	}
	if out.Seconds = end; put[n-1] > 0 {
		out.FullShare = full / (float64(l.Threads) * put[n-1])
	}
	if l.Batches > 1 && end > take[0]+l.TrainSeconds {
		out.EmptyShare = empty / (end - take[0] - l.TrainSeconds)
	}
	return out, nil
}

package simt

// Mapping spreads a loop nest over threads. Rows counts the independent results, Cols
// the elements that each is made of: 1 in an element-wise loop.
type Mapping struct {
	Rows int64 `json:"rows"`
	Cols int64 `json:"cols"`
	// RowsPerTask rows are done at a time by a block (horizontal packing).
	RowsPerTask int64 `json:"rows_per_task"`
	// Parts is the number of blocks that share a row (splitting); then RowsPerTask is 1
	// and the parts are put together by atomic updates.
	Parts int64 `json:"parts"`
	// Tasks is the number that a block does, one after the other (vertical packing).
	Tasks   int64 `json:"tasks"`
	Blocks  int64 `json:"blocks"`
	Threads int64 `json:"threads"` // per block
}

// TaskCount is the number of tasks of all blocks together.
func (p Mapping) TaskCount() int64 { return ceil(p.Rows, p.RowsPerTask) * p.Parts }

// RowsPerBlock is the number of consecutive rows that a block owns; 0 if it owns none whole.
func (p Mapping) RowsPerBlock() int64 {
	if p.Parts > 1 {
		return 0
	}
	return p.RowsPerTask * p.Tasks
}

// Pack is AStitch's mapping onto at most wave blocks of the given threads. Rows that are shorter than a block share
// one, as many as fit whole (horizontal packing); what then passes the wave is done by the same blocks, one task after
// the other (vertical packing). Fewer rows than half a wave, each longer than a block has threads, are cut into
// floor(wave / rows) parts (splitting), though never below the threads of a block.
//
// 750000 rows of 32 become tasks of 32 rows, 147 for each of 160 blocks; 64 rows of 30000 become 128 blocks.
func Pack(rows, cols, threads, wave int64) Mapping {
	p := Mapping{Rows: rows, Cols: cols, RowsPerTask: max(1, threads/cols), Parts: 1, Tasks: 1, Threads: threads}
	if rows < wave && cols > threads {
		p.Parts = max(1, min(wave/rows, ceil(cols, threads)))
	}
	p.RowsPerTask = min(p.RowsPerTask, rows)
	return p.vertical(wave)
}

// Align is the mapping of a nest that leaves every row to the block that owns it in another nest of as many rows.
func (p Mapping) Align(cols int64) Mapping {
	p.Cols = cols
	return p
}

// vertical lets at most wave blocks do all tasks.
func (p Mapping) vertical(wave int64) Mapping {
	n := p.TaskCount()
	p.Tasks = ceil(n, max(1, wave))
	p.Blocks = ceil(n, p.Tasks)
	return p
}

// Plain is the mapping of compilers that do not adapt it: a block for each row of a reduction, of as many threads as
// the row has, in whole warps; element-wise loops in blocks of 256 threads.
func (m *Machine) Plain(rows, cols int64) Mapping {
	if cols == 1 {
		t := min(256, m.Block.Threads)
		return Mapping{Rows: rows, Cols: 1, RowsPerTask: t, Parts: 1, Tasks: 1, Blocks: ceil(rows, t), Threads: t}
	}
	t := min(m.Block.Threads, ceil(cols, m.Block.Warp)*m.Block.Warp)
	return Mapping{Rows: rows, Cols: cols, RowsPerTask: 1, Parts: 1, Tasks: 1, Blocks: rows, Threads: t}
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

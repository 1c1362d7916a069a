package rcpsp

// What the example calls.
var (
	List     = listBy
	Parallel = parallel
)

// LatestFinish is latestFinish.
const LatestFinish = latestFinish

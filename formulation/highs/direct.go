//go:build cgo

package highs

// This file calls the few functions of HiGHS' C interface that the binding does not: the outcome of a run that ended
// with a warning, a start, what HiGHS reports while it runs, an interrupt, and the version.

/*
#cgo pkg-config: highs

#include <stdint.h>
#include "util/HighsInt.h"
#include "lp_data/HighsCallbackStruct.h"

// Declared here rather than included: until 1.11 or so, HiGHS' header defines its constants with external linkage, so
// only one package of a program can include it, and the binding does.
extern const char* Highs_version(void);
extern HighsInt Highs_clear(void* highs);
extern HighsInt Highs_getModelStatus(const void* highs);
extern HighsInt Highs_getNumCol(const void* highs);
extern HighsInt Highs_getNumRow(const void* highs);
extern HighsInt Highs_getSolution(const void* highs, double* col_value, double* col_dual,
                                  double* row_value, double* row_dual);
extern HighsInt Highs_getIntInfoValue(const void* highs, const char* info, HighsInt* value);
extern HighsInt Highs_getInt64InfoValue(const void* highs, const char* info, int64_t* value);
extern HighsInt Highs_getDoubleInfoValue(const void* highs, const char* info, double* value);
extern HighsInt Highs_setSolution(void* highs, const double* col_value, const double* row_value,
                                  const double* col_dual, const double* row_dual);
extern HighsInt Highs_setCallback(void* highs, HighsCCallbackType callback, void* user_data);
extern HighsInt Highs_startCallback(void* highs, const int callback_type);

// A watch is the state that HiGHS' callback has of the run: whether it is to stop, and
// the run's number on the Go side, 0 if no run is watched.
typedef struct {
  int32_t stop;
  uintptr_t run;
} dsasched_watch;

extern void dsaschedEvent(uintptr_t run, int improved, double bound, double* solution);

// The kinds of event, kHighsCallback... in HiGHS.
enum { simplexInterrupt = 1, ipmInterrupt = 2, mipImprovingSolution = 4, mipInterrupt = 6 };

static void onEvent(int type, const char* message, const HighsCallbackDataOut* out,
                    HighsCallbackDataIn* in, void* user) {
  (void)message;
  dsasched_watch* w = (dsasched_watch*)user;
  if (w->run && out && (type == mipImprovingSolution || type == mipInterrupt))
    dsaschedEvent(w->run, type == mipImprovingSolution, out->mip_dual_bound,
                  type == mipImprovingSolution ? out->mip_solution : 0);
  if (in) in->user_interrupt = __atomic_load_n(&w->stop, __ATOMIC_RELAXED) != 0;
}

static void watch(void* highs, dsasched_watch* w) {
  Highs_setCallback(highs, onEvent, w);
  Highs_startCallback(highs, simplexInterrupt);
  Highs_startCallback(highs, ipmInterrupt);
  Highs_startCallback(highs, mipImprovingSolution);
  Highs_startCallback(highs, mipInterrupt);
}

static HighsInt primalStatus(const void* highs) {
  HighsInt value = 0;
  Highs_getIntInfoValue(highs, "primal_solution_status", &value);
  return value;
}

static double dualBound(const void* highs) {
  double value = 0.0 / 0.0;
  Highs_getDoubleInfoValue(highs, "mip_dual_bound", &value);
  return value;
}
static int64_t nodeCount(const void* highs) {
  int64_t value = 0;
  Highs_getInt64InfoValue(highs, "mip_node_count", &value);
  return value > 0 ? value : 0;
}
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/cgo"
	"sync/atomic"
	"unsafe"

	lanl "github.com/lanl/highs"
)

// Version is the version of the HiGHS in use, such as "1.10.0".
func Version() string { return C.GoString(C.Highs_version()) }

// A status is HiGHS' HighsModelStatus.
type status int

const (
	statusOptimal               status = 7
	statusInfeasible            status = 8
	statusUnboundedOrInfeasible status = 9
	statusUnbounded             status = 10
	statusTimeLimit             status = 13
	statusSolutionLimit         status = 16 // of nodes, too
	statusInterrupt             status = 17
)

func (s status) String() string {
	names := map[status]string{
		0: "not set", 1: "load error", 2: "model error", 3: "presolve error", 4: "solve error", 5: "postsolve error",
		6: "empty model", 7: "optimal", 8: "infeasible", 9: "unbounded or infeasible", 10: "unbounded",
		11: "objective bound", 12: "objective target", 13: "time limit", 14: "iteration limit", 15: "unknown",
		16: "solution limit", 17: "interrupt", 18: "memory limit",
	}
	if name, ok := names[s]; ok {
		return name
	}
	return fmt.Sprintf("status %d", int(s))
}

// An outcome is HiGHS' report of a run.
type outcome struct {
	status   status
	feasible bool // values are a solution
	values   []float64
	bound    float64 // dual bound of a mixed-integer program, or NaN or huge
	nodes    int64   // of a mixed-integer program
}

// handle is the HiGHS object that raw wraps. The binding keeps it in an unexported field, which reflection may read.
func handle(raw *lanl.RawModel) unsafe.Pointer {
	return reflect.ValueOf(raw).Elem().FieldByName("obj").UnsafePointer()
}

func release(raw *lanl.RawModel) { C.Highs_clear(handle(raw)) }

func read(raw *lanl.RawModel) outcome {
	const primalFeasible = 2 // kHighsSolutionStatusFeasible
	h := handle(raw)
	x := make([]C.double, C.Highs_getNumCol(h))
	out := outcome{
		status:   status(C.Highs_getModelStatus(h)),
		feasible: C.primalStatus(h) == primalFeasible,
		bound:    float64(C.dualBound(h)),
		nodes:    int64(C.nodeCount(h)),
		values:   make([]float64, len(x)),
	}
	if len(x) > 0 {
		C.Highs_getSolution(h, &x[0], nil, nil, nil)
	}
	for j := range x {
		out.values[j] = float64(x[j])
	}
	return out
}

func setStart(raw *lanl.RawModel, x []float64) error {
	c := make([]C.double, len(x))
	for j := range x {
		c[j] = C.double(x[j])
	}
	if C.Highs_setSolution(handle(raw), &c[0], nil, nil, nil) < 0 {
		return errors.New("HiGHS refuses the start")
	}
	return nil
}

// listen makes raw's next run stop soon after run.stop is called, and report solutions and bounds to run. The function
// that it returns must be called when the run is over.
func listen(raw *lanl.RawModel, r *search) (done func()) {
	number := cgo.NewHandle(r)
	w := &C.dsasched_watch{run: C.uintptr_t(number)}
	// HiGHS keeps the address beyond the call that hands it over.
	var pin runtime.Pinner
	pin.Pin(w)
	C.watch(handle(raw), w)
	stop := context.AfterFunc(r.ctx, func() { atomic.StoreInt32((*int32)(&w.stop), 1) })
	return func() {
		stop()
		number.Delete()
		pin.Unpin()
	}
}

// dsaschedEvent is called by HiGHS, in the thread that solves.
//
//export dsaschedEvent
func dsaschedEvent(number C.uintptr_t, improved C.int, bound C.double, solution *C.double) {
	r := cgo.Handle(number).Value().(*search)
	var x []float64
	if improved != 0 && solution != nil {
		x = make([]float64, r.vars)
		for j, v := range unsafe.Slice(solution, len(x)) {
			x[j] = float64(v)
		}
	}
	r.event(x, float64(bound))
}

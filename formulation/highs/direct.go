//go:build cgo

package highs

// This file calls the few functions of HiGHS' C interface that the binding
// does not: the outcome of a run that ended with a warning, a start, an
// interrupt, and the version.

/*
#cgo pkg-config: highs

#include <stdint.h>
#include "util/HighsInt.h"
#include "lp_data/HighsCallbackStruct.h"

// Declared here rather than included: until 1.11 or so, HiGHS' header defines
// its constants with external linkage, so only one package of a program can
// include it, and the binding does.
extern const char* Highs_version(void);
extern HighsInt Highs_clear(void* highs);
extern HighsInt Highs_getModelStatus(const void* highs);
extern HighsInt Highs_getNumCol(const void* highs);
extern HighsInt Highs_getNumRow(const void* highs);
extern HighsInt Highs_getSolution(const void* highs, double* col_value, double* col_dual,
                                  double* row_value, double* row_dual);
extern HighsInt Highs_getIntInfoValue(const void* highs, const char* info, HighsInt* value);
extern HighsInt Highs_getDoubleInfoValue(const void* highs, const char* info, double* value);
extern HighsInt Highs_setSolution(void* highs, const double* col_value, const double* row_value,
                                  const double* col_dual, const double* row_dual);
extern HighsInt Highs_setCallback(void* highs, HighsCCallbackType callback, void* user_data);
extern HighsInt Highs_startCallback(void* highs, const int callback_type);

// interruptIfSet is HiGHS' callback: it stops the run once *flag is not 0.
static void interruptIfSet(int type, const char* message, const HighsCallbackDataOut* out,
                           HighsCallbackDataIn* in, void* flag) {
  (void)type, (void)message, (void)out;
  if (in) in->user_interrupt = __atomic_load_n((int32_t*)flag, __ATOMIC_RELAXED) != 0;
}

// watch has HiGHS look at *flag. The numbers are kHighsCallbackSimplexInterrupt,
// kHighsCallbackIpmInterrupt and kHighsCallbackMipInterrupt.
static void watch(void* highs, int32_t* flag) {
  Highs_setCallback(highs, interruptIfSet, flag);
  Highs_startCallback(highs, 1);
  Highs_startCallback(highs, 2);
  Highs_startCallback(highs, 6);
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
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
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

// An outcome is what HiGHS reports of a run.
type outcome struct {
	status   status
	feasible bool // values are a solution
	values   []float64
	bound    float64 // dual bound of a mixed-integer program, or NaN or huge
}

// handle is the HiGHS object that raw wraps. The binding keeps it in an
// unexported field, which reflection may read.
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

// armInterrupt makes raw's next run stop soon after ctx ends. The function
// that it returns must be called when the run is over.
func armInterrupt(ctx context.Context, raw *lanl.RawModel) (disarm func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	flag := new(int32)
	// HiGHS keeps the flag's address beyond the call that hands it over.
	var pin runtime.Pinner
	pin.Pin(flag)
	C.watch(handle(raw), (*C.int32_t)(flag))
	stop := context.AfterFunc(ctx, func() { atomic.StoreInt32(flag, 1) })
	return func() {
		stop()
		pin.Unpin()
	}
}

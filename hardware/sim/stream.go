package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/dsasched/dsasched/hardware/isa"
)

// LateError reports that a command came to a [Stream] when it should have started already.
type LateError struct {
	Index        int
	ShouldPs, Ps int64 // when it should have started, and the present time
}

func (e *LateError) Error() string {
	return fmt.Sprintf("command %d came at %d ps and should have started at %d", e.Index, e.Ps, e.ShouldPs)
}

// ErrLimit ends a [Stream] after Options.LimitPs.
var ErrLimit = errors.New("the program takes longer than the limit")

// Stream simulates a program whose commands come in parts, and forgets each when it has
// ended. The result equals that of [Run] with the whole program.
//
// Time goes on when so many commands are known beyond the last that has ended. If one comes
// later than it should have started, that is a [LateError], and the program is to be
// simulated again with more of it known: what is past does not change.
type Stream struct {
	e     *engine
	n     int
	ahead int
}

// NewStream is for a program that has neither commands nor buffers yet. Its clusters are
// as p.As says; those that stand for themselves, of which one at most has commands.
func NewStream(p *isa.Program, ahead int, opt Options) (*Stream, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := checkLimits(p); err != nil {
		return nil, err
	}
	f := foldClusters(p)
	e := newEngine(p, opt, f)
	if !opt.TimesOnly {
		e.meter = newMeter(p, f, e.scratch)
	}
	if opt.LimitPs > 0 {
		e.limit = opt.LimitPs
	}
	return &Stream{e: e, ahead: ahead}, nil
}

// Feed takes the commands that come next, which it does not keep.
func (s *Stream) Feed(ctx context.Context, commands []isa.Command) error {
	for k := range commands {
		c := &commands[k]
		if s.e.meter == nil {
			break
		}
		if err := s.e.p.CheckCommand(s.n, c); err != nil {
			return err
		}
		s.n++
	}
	if err := s.e.know(commands); err != nil {
		return err
	}
	if s.e.left < 2*s.ahead {
		return nil
	}
	if err := s.e.run(ctx, s.ahead); err != nil {
		return err
	}
	if s.e.limited {
		s.e.done()
		return ErrLimit
	}
	return nil
}

// Past reports that no command that is yet to come begins before a time: in each queue one that is known ends then
// or later. Queues without a command do not count.
func (s *Stream) Past(ps int64) bool {
	for q := range s.e.lanes {
		l := &s.e.lanes[q]
		if l.last != none && l.phase == idle && l.next == none && s.e.times[s.e.end[l.last]] < ps {
			return false
		}
	}
	return true
}

// check holds a result against the bound of its own program.
func (r *Result) check(program string) error {
	if least := r.Bound.Ps(); least > r.TotalPs {
		return fmt.Errorf("internal error, program %q takes %d ps, less than its bound of %d ps", program, r.TotalPs, least)
	}
	return nil
}

// End simulates what is left. The program may have its buffers now, of which CheckBuffers is
// asked, and loses them, since the times of the commands are not in the result.
func (s *Stream) End(ctx context.Context) (*Result, error) {
	if err := s.e.run(ctx, 0); err != nil {
		return nil, err
	}
	defer s.e.done()
	if s.e.limited {
		return nil, ErrLimit
	}
	if s.e.meter == nil {
		return &Result{TotalPs: s.e.now}, nil
	}
	if err := s.e.meter.totals.buffers(); err != nil {
		return nil, err
	}
	if len(s.e.start) > maxScratch {
		s.e.pages, s.e.spare, s.e.meter.bound.end = nil, nil, nil
	}
	r, u := s.e.meter.result(s.e.start, s.e.end, s.e.times)
	if err := cmp.Or(u.check(), r.check(s.e.p.Name)); err != nil {
		return nil, err
	}
	s.e.p.Buffers = nil
	return r, nil
}

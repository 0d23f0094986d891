package mcp

import (
	"context"
	"sync"
)

// running is the programs of this process that have not been stopped.
var running programs

// programs is the processes that run. Their groups outlive dsh unless they are
// stopped.
type programs struct {
	mu  sync.Mutex
	all map[*process]bool
}

// start starts a process and remembers it, unless ctx has ended: so that none comes
// after those that ended ctx have killed all.
func (s *programs) start(ctx context.Context, p *process) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.group, err = startGroup(p.cmd); err != nil {
		return err
	}
	if s.all == nil {
		s.all = map[*process]bool{}
	}
	s.all[p] = true
	return nil
}

func (s *programs) forget(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, p)
}

func (s *programs) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.all {
		p.group.kill()
	}
}

// KillAll ends the programs of all servers with all that they started, at once. It
// is for a dsh that ends without waiting for its connections to be stopped; those
// whose context has ended start none any more.
func KillAll() { running.kill() }

package service

import (
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

const (
	maxProgressText = 4 << 10
	progressPerSec  = 20
)

// Progress tells whoever watches how an attempt goes. Only Kind, Text, Agent and
// Usage are read. It never blocks for long, may be called by several goroutines,
// and drops what is too much: about twenty messages a second go through.
type Progress func(forge.Progress)

func (a *attempt) progress() Progress {
	var limit rate
	return func(p forge.Progress) {
		now := time.Now()
		if !limit.allow(now) && p.Kind != forge.ProgressStarted && p.Kind != forge.ProgressEnded {
			return
		}
		p.To, p.Attempt, p.Replica, p.At = a.cmd.To, a.cmd.Attempt, a.run.Replica, now.UTC()
		if len(p.Text) > maxProgressText {
			p.Text = p.Text[:maxProgressText]
		}
		p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
		if err := a.run.Bus.Progress(p); err != nil {
			a.log.Debug("progress is lost", "err", err)
		}
	}
}

// rate counts within the present second.
type rate struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

func (r *rate) allow(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= time.Second {
		r.since, r.n = now, 0
	}
	r.n++
	return r.n <= progressPerSec
}

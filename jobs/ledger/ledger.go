// Package ledger counts the usage of one attempt's calls across restarts of the process
// and across replicas. [Open] begins a [Meter] with what was counted before; what a
// session hands on to another replica is a [Ledger], which that one passes to [TakeOver].
package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/service"
)

// Ledger is the usage of one attempt across processes and replicas. A service
// that is killed cannot report it; the process that goes on with the attempt does:
// after a restart it finds the ledger in a file, another replica gets it with the
// session. Each host raises only its own entries, so ledgers are merged entry by
// entry, and nothing is counted twice.
type Ledger struct {
	// Attempt is the attempt's name without its claim.
	Attempt string `json:"attempt"`
	// Entries are by host and claim.
	Entries map[string]entry `json:"entries"`
}

// entry is the usage that one host counted under one claim.
type entry struct {
	// Used only grows.
	Used forge.Usage `json:"used"`
	// ReportedBy is the claim whose result includes it; 0: none does yet.
	ReportedBy int `json:"told,omitempty"`
}

// merge takes over the entries of another ledger of the same attempt; of an entry
// that both have, the larger numbers.
func (l *Ledger) merge(other *Ledger) {
	if other.Attempt != l.Attempt {
		return
	}
	for key, theirs := range other.Entries {
		mine := l.Entries[key]
		l.Entries[key] = entry{mostUsed(mine.Used, theirs.Used), max(mine.ReportedBy, theirs.ReportedBy)}
	}
}

// mostUsed returns the later of two states of a usage, which only grows.
func mostUsed(a, b forge.Usage) forge.Usage {
	return forge.Usage{
		InputTokens: max(a.InputTokens, b.InputTokens), OutputTokens: max(a.OutputTokens, b.OutputTokens),
		CacheReadTokens: max(a.CacheReadTokens, b.CacheReadTokens), CacheWriteTokens: max(a.CacheWriteTokens, b.CacheWriteTokens),
		CostUSD: max(a.CostUSD, b.CostUSD), Turns: max(a.Turns, b.Turns), Calls: max(a.Calls, b.Calls),
	}
}

// write replaces the ledger's file. Errors are ignored: the work does not depend on
// it.
func (l *Ledger) write(path string) {
	data, err := json.Marshal(l)
	if err != nil {
		return
	}
	if os.WriteFile(path+".new", data, 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// pathIn names the file of the ledger in a state directory.
func pathIn(stateDir string) string { return filepath.Join(stateDir, "used.json") }

// Read returns the ledger in a state directory, empty if it is of another attempt.
func Read(stateDir string, a forge.Attempt) *Ledger {
	a.Claim = 0 // another claim goes on with the same attempt
	l := &Ledger{Attempt: a.String(), Entries: map[string]entry{}}
	var found Ledger
	if data, err := os.ReadFile(pathIn(stateDir)); err == nil && json.Unmarshal(data, &found) == nil {
		l.merge(&found)
	}
	return l
}

// TakeOver merges the ledger of another replica into the one in a state directory, and reports
// whether it is of the same attempt and could be kept.
func TakeOver(stateDir string, a forge.Attempt, theirs *Ledger) bool {
	l := Read(stateDir, a)
	if theirs.Attempt != l.Attempt || os.MkdirAll(stateDir, 0o700) != nil {
		return false
	}
	l.merge(theirs)
	l.write(pathIn(stateDir))
	return true
}

// Meter counts the usage of an attempt's calls. It is safe for concurrent use.
type Meter struct {
	// path is the ledger's file.
	path string
	// mine is the key of this host's entry.
	mine string
	// claim is that of the attempt.
	claim int

	mu     sync.Mutex
	ledger *Ledger
	// ended is the usage of this host's calls that are over.
	ended forge.Usage
}

// Open returns the meter of an attempt on a host. before is the usage that was counted for the
// same attempt until now, except for entries that another claim has reported.
func Open(stateDir, host string, a forge.Attempt) (m *Meter, before forge.Usage) {
	m = &Meter{path: pathIn(stateDir), mine: fmt.Sprintf("%s/%d", host, a.Claim), claim: a.Claim, ledger: Read(stateDir, a)}
	for _, e := range m.ledger.Entries {
		if e.ReportedBy == 0 || e.ReportedBy == a.Claim {
			before = before.Add(e.Used)
		}
	}
	m.ended = m.ledger.Entries[m.mine].Used
	return m, before
}

// Watch returns a sink that records usage events and passes all events on.
func (m *Meter) Watch(next func(agent.Event)) func(agent.Event) {
	return func(e agent.Event) {
		if e.Kind == agent.EventUsage {
			m.mu.Lock()
			m.record(m.ended.Add(e.Usage))
			m.mu.Unlock()
		}
		next(e)
	}
}

// End adds the final usage of a call.
func (m *Meter) End(u forge.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = m.ended.Add(u)
	m.record(m.ended)
}

// record sets this host's entry and writes the ledger. The caller holds mu.
func (m *Meter) record(used forge.Usage) {
	e := m.ledger.Entries[m.mine]
	e.Used = used
	m.ledger.Entries[m.mine] = e
	m.ledger.write(m.path)
}

// MarkReported marks the entries that the attempt's result includes, unless the lease is
// lost: then the replica that has the attempt now reports them. A nil meter has none.
func (m *Meter) MarkReported(ctx context.Context) {
	if m == nil || service.Held(ctx) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, e := range m.ledger.Entries {
		if e.ReportedBy == 0 {
			e.ReportedBy = m.claim
			m.ledger.Entries[key] = e
		}
	}
	m.ledger.write(m.path)
}

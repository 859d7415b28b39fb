package repository

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

// ledger is what an attempt has used so far, wherever it was. A service that is killed
// cannot report it; whoever goes on with the attempt does: its next life, which finds
// the ledger in a file, or another replica, which gets it with the session. Each host
// raises entries of its own only, so ledgers are merged entry by entry, and nothing
// counts twice.
type usageLedger struct {
	Attempt string           `json:"attempt"` // without its claim
	Entries map[string]entry `json:"entries"` // by host and claim
}

type entry struct {
	Used       forge.Usage `json:"used"`
	ReportedBy int         `json:"told,omitempty"` // the claim whose result tells it; 0: none does yet
}

func (l *usageLedger) merge(other *usageLedger) {
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

// write is best effort: nothing of the work hangs on it.
func (l *usageLedger) write(path string) {
	data, err := json.Marshal(l)
	if err != nil {
		return
	}
	if os.WriteFile(path+".new", data, 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}

func ledgerPath(stateDir string) string { return filepath.Join(stateDir, "used.json") }

// readLedger returns what a state directory has of the job's attempt.
func (j *Job) readLedger(stateDir string) *usageLedger {
	a := j.Command.Attempt
	a.Claim = 0 // another claim goes on with the same attempt
	l := &usageLedger{Attempt: a.String(), Entries: map[string]entry{}}
	var found usageLedger
	if data, err := os.ReadFile(ledgerPath(stateDir)); err == nil && json.Unmarshal(data, &found) == nil {
		l.merge(&found)
	}
	return l
}

// takeOver adds what another replica has counted of the job's attempt. It is in the
// result from now on, also if no call is made any more.
func (j *Job) takeOver(stateDir string, theirs *usageLedger) {
	l := j.readLedger(stateDir)
	if theirs.Attempt != l.Attempt || os.MkdirAll(stateDir, 0o700) != nil {
		return
	}
	l.merge(theirs)
	l.write(ledgerPath(stateDir))
	j.meter(stateDir)
}

// meter counts what the calls of a job use. It is safe for concurrent use.
type meter struct {
	path  string
	mine  string // key of this host's entry
	claim int

	mu     sync.Mutex
	ledger *usageLedger
	ended  forge.Usage // of this host's calls that are over
}

// meter begins to count. At first it adds to the result what was used for the same attempt
// before, except for what another claim tells in a result of its own.
func (j *Job) meter(stateDir string) *meter {
	if j.metered != nil {
		return j.metered
	}
	claim := j.Command.Attempt.Claim
	m := &meter{path: ledgerPath(stateDir), mine: fmt.Sprintf("%s/%d", j.host.id, claim), claim: claim, ledger: j.readLedger(stateDir)}
	for _, e := range m.ledger.Entries {
		if e.ReportedBy == 0 || e.ReportedBy == claim {
			j.Result.Usage = j.Result.Usage.Add(e.Used)
		}
	}
	m.ended = m.ledger.Entries[m.mine].Used
	j.metered = m
	return m
}

// watch notes what is used, and passes on what happens.
func (m *meter) watch(next func(agent.Event)) func(agent.Event) {
	return func(e agent.Event) {
		if e.Kind == agent.EventUsage {
			m.mu.Lock()
			m.record(m.ended.Add(e.Usage))
			m.mu.Unlock()
		}
		next(e)
	}
}

// end notes what a call used that is over.
func (m *meter) end(u forge.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = m.ended.Add(u)
	m.record(m.ended)
}

func (m *meter) record(used forge.Usage) {
	e := m.ledger.Entries[m.mine]
	e.Used = used
	m.ledger.Entries[m.mine] = e
	m.ledger.write(m.path)
}

// told notes that the job's result tells what was used, unless it may not be reported
// because another replica has the attempt by now.
func (j *Job) markReported(ctx context.Context) {
	m := j.metered
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

package jobs

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

// usageLedger is the usage of one attempt across processes and replicas. A service
// that is killed cannot report it; the process that goes on with the attempt does:
// after a restart it finds the ledger in a file, another replica gets it with the
// session. Each host raises only its own entries, so ledgers are merged entry by
// entry, and nothing is counted twice.
type usageLedger struct {
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

// write replaces the ledger's file. Errors are ignored: the work does not depend on
// it.
func (l *usageLedger) write(path string) {
	data, err := json.Marshal(l)
	if err != nil {
		return
	}
	if os.WriteFile(path+".new", data, 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// ledgerPath returns the file of the ledger in a state directory.
func ledgerPath(stateDir string) string { return filepath.Join(stateDir, "used.json") }

// readLedger returns the ledger in a state directory, empty if it is of another
// attempt. The claim is left out: another claim continues the same attempt.
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

// takeOver merges the ledger of another replica into this one's, and adds it to the
// result, even if no call is made any more.
func (j *Job) takeOver(stateDir string, theirs *usageLedger) {
	l := j.readLedger(stateDir)
	if theirs.Attempt != l.Attempt || os.MkdirAll(stateDir, 0o700) != nil {
		return
	}
	l.merge(theirs)
	l.write(ledgerPath(stateDir))
	j.meter(stateDir)
}

// meter counts the usage of a job's calls. It is safe for concurrent use.
type meter struct {
	// path is the ledger's file.
	path string
	// mine is the key of this host's entry.
	mine string
	// claim is that of the job's command.
	claim int

	mu     sync.Mutex
	ledger *usageLedger
	// ended is the usage of this host's calls that are over.
	ended forge.Usage
}

// meter returns the job's meter. When it is made, it adds to the result the usage
// that was counted for the same attempt before, except for entries that another claim
// has reported.
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

// watch returns a sink that records usage events and passes all events on.
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

// end adds the final usage of a call.
func (m *meter) end(u forge.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = m.ended.Add(u)
	m.record(m.ended)
}

// record sets this host's entry and writes the ledger. The caller holds mu.
func (m *meter) record(used forge.Usage) {
	e := m.ledger.Entries[m.mine]
	e.Used = used
	m.ledger.Entries[m.mine] = e
	m.ledger.write(m.path)
}

// markReported marks the entries that the job's result includes, unless the lease is
// lost: then the replica that has the attempt now reports them.
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

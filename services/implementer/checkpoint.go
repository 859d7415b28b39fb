package implementer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// checkpoint is the implementer's record of an attempt beside the checkout, where no
// agent can reach it: how the attempt began, and, once the agent has ended, with what
// result. An attempt that is delivered again goes on from it, in another replica too:
// it is stored with the agent's session.
type checkpoint struct {
	said

	// path is the file that write replaces.
	path string

	// Intent is the id of the task's intent.
	Intent forge.IntentID `json:"intent"`
	// Number is that of the attempt.
	Number int `json:"number"`
	// Base is the commit that the task's commits are on top of.
	Base git.OID `json:"base"`
	// From is the commit that this attempt began with.
	From git.OID `json:"from"`
	// SetUp says that worktree_setup ran in the checkout.
	SetUp bool `json:"set_up,omitempty"`
	// Called says that the agent has been called in the command's session.
	Called bool `json:"called,omitempty"`
	// Head is the branch's commit as it was saved last.
	Head git.OID `json:"head,omitempty"`
	// Work is a commit with what was not committed then; empty: nothing.
	Work git.OID `json:"work,omitempty"`
	// Tokens were used by attempts that this one continues.
	Tokens int64 `json:"tokens,omitempty"`
	// Interrupted is a commit with work that was cut off and is not in the tree.
	Interrupted git.OID `json:"interrupted,omitempty"`
	// Ended says that the agent ended by itself, with Result or Failure.
	Ended bool `json:"ended,omitempty"`
	// GivenBack says that the checkout may be gone: everything that is needed
	// of it is here and in the store.
	GivenBack bool `json:"given_back,omitempty"`
	// Tools are those that the agent used in an iteration, each once, sorted.
	Tools []string `json:"tools,omitempty"`
	// Result has the agent's usage; its Output is not kept.
	Result forge.Result `json:"result,omitzero"`
	// Failure is set for an attempt that ended in one.
	Failure *forge.Failure `json:"failure,omitempty"`
	// Implementation is the result's output; set once the checkout is given back.
	Implementation *forge.Implementation `json:"implementation,omitempty"`
}

// said holds the answer of an agent that ended by itself.
type said struct {
	// Summary is the agent's own, of an attempt that succeeded.
	Summary   string `json:"summary,omitempty"`
	NotNeeded bool   `json:"not_needed,omitempty"` // a recipe said that nothing had to be changed
	// Blocked is the question without whose answer the agent cannot go on.
	Blocked *forge.Clarification `json:"blocked,omitempty"`
	// NothingToDo is the agent's claim that the base meets the task already.
	NothingToDo string `json:"nothing_to_do,omitempty"`
	// Denied lists the uses of tools that the agent's program did not allow.
	Denied []string `json:"denied,omitempty"`
	// Execution is the agent's answer in an iteration of a goal.
	Execution *forge.Execution `json:"execution,omitempty"`
}

// newCheckpoint returns the checkpoint of an attempt that begins with a commit.
func newCheckpoint(j *jobs.Job, base, from git.OID) *checkpoint {
	return &checkpoint{
		path: checkpointPath(j.StateDir(string(j.Task()))), Intent: j.Command.To.Intent, Number: j.Command.Attempt.Number,
		Base: base, From: from,
	}
}

// next returns the checkpoint of an attempt that continues this one in the same tree.
func (n *checkpoint) next(j *jobs.Job) *checkpoint {
	m := newCheckpoint(j, n.Base, n.From)
	m.SetUp, m.Called, m.Head, m.Work, m.Interrupted = n.SetUp, n.Called, n.Head, n.Work, n.Interrupted
	m.Tools, m.Tokens = n.Tools, n.Tokens+tokens(n.Result.Usage)
	return m
}

// dropInterrupted forgets the work that was cut off if it is in the tree: the
// agent is told of work elsewhere only if it is elsewhere.
func (n *checkpoint) dropInterrupted() {
	if n.Interrupted == n.Work || n.Interrupted == n.Head {
		n.Interrupted = ""
	}
}

// answerTool is the tool by which Claude Code answers. It does no work, so it is not recorded.
const answerTool = "StructuredOutput"

// maxTools bounds how many tools are recorded: programs name them as they like.
const maxTools = 100

// used records the tools of a call, including one that was cut off.
func (n *checkpoint) used(tools map[string]int) error {
	all := slices.AppendSeq(slices.Clone(n.Tools), maps.Keys(tools))
	all = slices.DeleteFunc(all, func(name string) bool { return name == answerTool })
	slices.Sort(all)
	all = slices.Compact(all)
	n.Tools = all[:min(len(all), maxTools)]
	return n.write()
}

// checkpointPath returns the file of a task's checkpoint in its state directory.
func checkpointPath(stateDir string) string { return filepath.Join(stateDir, "attempt.json") }

// loadCheckpoint returns the checkpoint of the task's last attempt in this replica,
// or nil. One that cannot be parsed counts as none: the checkout is then made anew.
func loadCheckpoint(path string) (*checkpoint, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("read what is known of the attempt: %w", err)
	}
	return parseCheckpoint(path, data), nil
}

// parseCheckpoint returns nil for data that is not a checkpoint.
func parseCheckpoint(path string, data []byte) *checkpoint {
	n := &checkpoint{path: path}
	if json.Unmarshal(data, n) != nil {
		return nil
	}
	return n
}

// end records how the agent ended.
func (n *checkpoint) end(r *forge.Result, err error) error {
	n.Ended, n.Result = true, *r
	n.Result.Output = nil // an interface, which cannot be read back
	if err != nil {
		n.Failure = jobs.Failure(err)
	}
	return n.write()
}

// reported returns whether the attempt's work became commits of the task.
func (n *checkpoint) reported() bool { return n.Ended && n.Failure == nil }

// write stores the checkpoint on the disk.
func (n *checkpoint) write() error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := writeDurable(n.path, data); err != nil {
		return fmt.Errorf("write what is known of the attempt: %w", err)
	}
	return nil
}

// writeDurable replaces a file as a whole: a reader sees the old content or the new one. When it
// returns, the content survives a crash of the machine; both the file and its folder are synced.
func writeDurable(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

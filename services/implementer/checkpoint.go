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
	"github.com/pfl-forge/pfl-forge/repository"
)

// note is what an implementer remembers of an attempt beside the checkout, where no
// agent can reach it: how it began, and, once the agent has ended, how that went.
// An attempt that is delivered again goes on from it, also elsewhere: it is stored
// with the agent's session.
type checkpoint struct {
	path string

	Intent      forge.IntentID   `json:"intent"`
	Number      int              `json:"number"`                // of the attempt
	Base        git.OID          `json:"base"`                  // what the task's commits are on top of
	From        git.OID          `json:"from"`                  // what this attempt began with
	SetUp       bool             `json:"set_up,omitempty"`      // the checkout is set up
	Called      bool             `json:"called,omitempty"`      // the agent has been called in the command's conversation
	Head        git.OID          `json:"head,omitempty"`        // of the branch, as it was saved last
	Work        git.OID          `json:"work,omitempty"`        // has what was not committed then
	Tokens      int64            `json:"tokens,omitempty"`      // used by attempts that this one continues
	Interrupted git.OID          `json:"interrupted,omitempty"` // has work that was cut off and is not in the tree
	Ended       bool             `json:"ended,omitempty"`       // the agent ended by itself
	GivenBack   bool             `json:"given_back,omitempty"`  // the checkout may be gone: all that is needed of it is in this note, and in the store
	Summary     string           `json:"summary,omitempty"`
	NotNeeded   bool             `json:"not_needed,omitempty"` // a recipe said that nothing had to be changed
	Execution   *forge.Execution `json:"execution,omitempty"`  // what it answered
	Tools       []string         `json:"tools,omitempty"`      // that it used, each once, sorted; of an execution
	Result      forge.Result     `json:"result,omitzero"`      // what the agent used; without an Output
	Failure     *forge.Failure   `json:"failure,omitempty"`    // of an attempt that ended in one
	// Implementation is what is reported, once the checkout is given back.
	Implementation *forge.Implementation `json:"implementation,omitempty"`
}

func newCheckpoint(j *repository.Job, base, from git.OID) *checkpoint {
	return &checkpoint{
		path: checkpointPath(j.StateDir(string(j.Task()))), Intent: j.Command.To.Intent, Number: j.Command.Attempt.Number,
		Base: base, From: from,
	}
}

// next is the note of an attempt that goes on in the same tree.
func (n *checkpoint) next(j *repository.Job) *checkpoint {
	m := newCheckpoint(j, n.Base, n.From)
	m.SetUp, m.Called, m.Head, m.Work, m.Interrupted = n.SetUp, n.Called, n.Head, n.Work, n.Interrupted
	m.Tools, m.Tokens = n.Tools, n.Tokens+tokens(n.Result.Usage)
	return m
}

// answering is the tool by which Claude Code answers. It does no work.
const answerTool = "StructuredOutput"

// maxTools bounds how many different tools are noted: a program names them as it likes.
const maxTools = 100

// used notes the tools of a call, also of one that was cut off.
func (n *checkpoint) used(tools map[string]int) error {
	all := slices.AppendSeq(slices.Clone(n.Tools), maps.Keys(tools))
	all = slices.DeleteFunc(all, func(name string) bool { return name == answerTool })
	slices.Sort(all)
	all = slices.Compact(all)
	n.Tools = all[:min(len(all), maxTools)]
	return n.write()
}

// notePath is where the note of a task is, in the directory of its state.
func checkpointPath(stateDir string) string { return filepath.Join(stateDir, "attempt.json") }

// loadNote returns the note of the task's last attempt in this replica, or nil. One
// that cannot be read is none: the checkout is then made afresh.
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

func parseCheckpoint(path string, data []byte) *checkpoint {
	n := &checkpoint{path: path}
	if json.Unmarshal(data, n) != nil {
		return nil
	}
	return n
}

// end notes how the agent ended.
func (n *checkpoint) end(r *forge.Result, err error) error {
	n.Ended, n.Result = true, *r
	n.Result.Output = nil // an interface, which cannot be read back
	if err != nil {
		n.Failure = repository.Failure(err)
	}
	return n.write()
}

// reported says whether the attempt's work became commits of the task.
func (n *checkpoint) reported() bool { return n.Ended && n.Failure == nil }

// write makes the note durable.
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

// writeDurable replaces a file as a whole, on the disk.
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

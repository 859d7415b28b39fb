package checkout

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
	"github.com/pfl-forge/pfl-forge/git/objects"
)

// Checkout is a private working tree with a .git of its own, for one task or
// for reading one commit. A Pool makes it, and gets it back by Park or Release;
// after that no method may be called. It is for one goroutine at a time.
type Checkout struct {
	pool *Pool
	name git.Name
	// branch is the task's branch in the agent's .git; empty for a checkout
	// that is for reading.
	branch git.Branch
	// inTurn says that it is of ViewInTurn.
	inTurn bool
	// start is the commit that Prepare checked out. What the agent commits
	// descends from it.
	start git.OID
	// head is the last head of the branch that is known to be in the store:
	// start, or the one that Collect or CommitAll ended at. Reopen compares it.
	head git.OID
	// parked says that Park gave the checkout back, so that the pool may take
	// its tree.
	parked bool
	// committed says that CommitAll has just committed what is in the working tree.
	committed bool
}

// state is the content of .own/<name>/state.json: everything that a later
// process has to know of a checkout. A checkout without that file was not
// filled to its end.
type state struct {
	Branch git.Branch `json:"branch,omitempty"`
	Start  git.OID    `json:"start"`
	Head   git.OID    `json:"head"`
	Parked bool       `json:"parked,omitempty"` // see Park
}

// Name returns the name that the checkout was prepared under.
func (c *Checkout) Name() git.Name { return c.name }

// Dir returns the absolute path of the working tree. It stays the same until the
// checkout is given back.
func (c *Checkout) Dir() string { return c.pool.path(string(c.name)) }

// Branch returns the branch that Prepare checked out. It is empty when the checkout is for reading.
func (c *Checkout) Branch() git.Branch { return c.branch }

// Start returns the commit that Prepare or View checked out. Commits on top of it are the agent's.
func (c *Checkout) Start() git.OID { return c.start }

// Env returns the environment variables, as KEY=VALUE, that a process in the checkout
// needs so that git does not find the repository around the checkouts when the agent
// removes its own .git.
func (c *Checkout) Env() []string { return []string{"GIT_CEILING_DIRECTORIES=" + c.pool.dir} }

// WriteFile puts a file for the agent at .forge/<name> in the checkout, where it can
// never be committed. Whatever is there, also a link, is replaced and not followed.
func (c *Checkout) WriteFile(name string, content []byte) error {
	n, err := git.ParsePath(name)
	if err != nil || filepath.Base(string(n)) != string(n) {
		return fmt.Errorf("file %q: want a plain file name", git.Clip(name))
	}
	dir := filepath.Join(c.Dir(), objects.ForgeDir)
	if !disk.IsDir(dir) {
		if err := c.pool.throw(dir); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, string(n))
	if disk.IsDir(path) {
		if err := c.pool.throw(path); err != nil {
			return err
		}
	}
	if err := disk.WriteFile(path, content); err != nil {
		return err
	}
	return os.Chmod(path, 0o644)
}

// Release gives the checkout back for re-use; what is in it is lost. The checkout must
// not be used any more.
func (c *Checkout) Release() error {
	defer c.pool.leave(c)
	return c.pool.retire(string(c.name))
}

// own returns the path of a file that the service keeps about the checkout, where no
// agent can reach it.
func (c *Checkout) own(file string) string { return c.pool.path(".own", string(c.name), file) }

// files returns the working tree with the service's index. Nothing of the agent's .git is used.
func (c *Checkout) files() files { return files{pool: c.pool, dir: c.Dir(), index: c.own("index")} }

// tree returns a git command on the agent's working tree that uses the given index and
// nothing of the agent's .git.
func (c *Checkout) tree(index string) git.Command {
	return files{pool: c.pool, dir: c.Dir(), index: index}.command()
}

// save writes state.json, in one step that survives a crash.
func (c *Checkout) save() error {
	b, err := json.Marshal(state{Branch: c.branch, Start: c.start, Head: c.head, Parked: c.parked})
	if err != nil {
		return err
	}
	return disk.WriteFile(c.own("state.json"), b)
}

// load reads state.json into c. It fails if the checkout was not filled to its
// end.
func (c *Checkout) load() error {
	b, err := os.ReadFile(c.own("state.json"))
	if err != nil {
		return err
	}
	var st state
	if err := json.Unmarshal(b, &st); err != nil {
		return err
	}
	c.branch, c.start, c.head, c.parked = st.Branch, st.Start, st.Head, st.Parked
	return nil
}

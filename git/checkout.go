package git

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Checkout is a private working tree with a .git of its own, for one task or for reading one commit.
type Checkout struct {
	pool   *Pool
	name   Name
	branch Branch // empty when it is for reading
	start  OID    // what Prepare checked out
	head   OID    // the last head that we know to be in the store
	parked bool   // not in use
}

// state is what our side remembers of a checkout.
type state struct {
	Branch Branch `json:"branch,omitempty"`
	Start  OID    `json:"start"`
	Head   OID    `json:"head"`
	Parked bool   `json:"parked,omitempty"`
}

// Name is the name it was prepared under.
func (c *Checkout) Name() Name { return c.name }

// Dir is the absolute path of the working tree.
func (c *Checkout) Dir() string { return c.pool.path(string(c.name)) }

// Branch is the branch that is checked out, empty when the checkout is for reading.
func (c *Checkout) Branch() Branch { return c.branch }

// Start is the commit that was checked out.
func (c *Checkout) Start() OID { return c.start }

// Env is what a process that works in the checkout should have in its environment, so that git never finds
// the repository around the checkouts when the agent removes its own .git.
func (c *Checkout) Env() []string { return []string{"GIT_CEILING_DIRECTORIES=" + c.pool.dir} }

// WriteFile puts a file for the agent at .forge/<name> in the checkout, where it can never be committed.
// Whatever is there, also a link, is replaced and not followed.
func (c *Checkout) WriteFile(name string, content []byte) error {
	n, err := ParsePath(name)
	if err != nil || filepath.Base(string(n)) != string(n) {
		return fmt.Errorf("file %q: want a plain file name", clip(name))
	}
	dir := filepath.Join(c.Dir(), forgeDir)
	if !isDir(dir) {
		if err := c.pool.throw(dir); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, string(n))
	if isDir(path) {
		if err := c.pool.throw(path); err != nil {
			return err
		}
	}
	if err := writeFile(path, content); err != nil {
		return err
	}
	return os.Chmod(path, 0o644)
}

// Release gives the checkout back for re-use. It must not be used any more.
func (c *Checkout) Release() error { return c.pool.retire(string(c.name)) }

func (c *Checkout) own(file string) string { return c.pool.path(".own", string(c.name), file) }

// files is the working tree, which our side describes and the agent's .git has no say in.
func (c *Checkout) files() files { return files{pool: c.pool, dir: c.Dir(), index: c.own("index")} }

// tree is a command of our own on the agent's working tree, with an index of ours and none of the agent's .git.
func (c *Checkout) tree(index string) command {
	return files{pool: c.pool, dir: c.Dir(), index: index}.command()
}

func (c *Checkout) save() error {
	b, err := json.Marshal(state{Branch: c.branch, Start: c.start, Head: c.head, Parked: c.parked})
	if err != nil {
		return err
	}
	return writeFile(c.own("state.json"), b)
}

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

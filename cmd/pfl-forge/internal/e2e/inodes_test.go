package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// useUpInodes takes every inode of one implementer's disk, and each that it gives
// free, until the fault's end. Meanwhile /readyz of that replica says 503, and
// the other one does the work; at the end it is ready again by its own probe.
func (x *trouble) useUpInodes() {
	folder, made := filepath.Join(x.dir, sickState, "filler"), 0
	if err := os.Mkdir(folder, 0o700); err != nil {
		x.t.Fatal(err)
	}
	take := func() {
		for {
			err := os.WriteFile(filepath.Join(folder, fmt.Sprint(made)), nil, 0o600)
			if errors.Is(err, syscall.ENOSPC) {
				return
			}
			if err != nil {
				x.t.Fatal(err)
			}
			made++
		}
	}
	sick := x.procs[4]
	take()
	wait.Until(x.t, "the replica without inodes is not ready", func() bool { take(); return x.ready(sick) == http.StatusServiceUnavailable })
	before := x.merged()
	x.repeat(100*time.Millisecond, take)
	wait.Until(x.t, "the other replica does the work", func() bool { take(); n := x.merged(); return n > before || n == x.asked })
	if got := x.ready(sick); got != http.StatusServiceUnavailable {
		x.t.Errorf("/readyz of the replica without inodes says %d at the end of the fault", got)
	}
	if err := os.RemoveAll(folder); err != nil {
		x.t.Error(err)
	}
	wait.Until(x.t, "the replica is ready again", func() bool { return x.ready(sick) == http.StatusOK })
}

var healthAddr = regexp.MustCompile(`health endpoint.*addr"?[=:]"?([0-9.:]+)`)

// ready returns the status with which /readyz of a process answers; 0 if it does not.
func (c *cluster) ready(p *process) int {
	c.t.Helper()
	found := healthAddr.FindAllStringSubmatch(c.log(p), -1)
	if len(found) == 0 {
		return 0
	}
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "http://"+found[len(found)-1][1]+"/readyz", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

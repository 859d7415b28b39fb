package process

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/pfl-forge/pfl-forge/internal/demand"
)

// MarkerVariable is the environment variable that every process of a command carries.
// Its value starts with the owner's mark.
const MarkerVariable = "FORGE_RUN_ID"

// Owner identifies a service across its restarts. It marks the processes of its
// commands, so that after a crash the restarted service finds those that were left
// running. The zero Owner is valid, but its processes are not found.
type Owner struct {
	mark string
	// lock is the file of Hold; nil if there is none.
	lock *atomic.Pointer[os.File]
	// maxSilence is the duration of EndWhenStopped in nanoseconds; 0 means none.
	maxSilence *atomic.Int64
	// executor is that of RunIn; nil: this machine.
	executor Executor
	// bounds are those of Within.
	bounds demand.Bounds
}

// NewOwner returns the owner whose state is in stateDir. No two services that run at
// the same time may share it.
func NewOwner(stateDir string) Owner {
	abs, err := filepath.Abs(stateDir)
	if err != nil {
		abs = stateDir
	}
	sum := sha256.Sum256([]byte(abs))
	return Owner{mark: hex.EncodeToString(sum[:8]), lock: &atomic.Pointer[os.File]{}, maxSilence: &atomic.Int64{}}
}

// Hold makes every command that starts from now on keep a locked file open, too, until
// its last process is gone. A restarted service that waits for the lock thus never runs
// beside commands of its predecessor, however that ended. The file must stay open.
func (o Owner) Hold(lock *os.File) {
	if o.lock != nil {
		o.lock.Store(lock)
	}
}

// Within returns the same owner, whose commands on this machine may take so
// much of it. What a command's own Limits say goes before. Where the memory
// cannot be limited, commands fail with ErrSandbox.
func (o Owner) Within(b demand.Bounds) Owner {
	o.bounds = b
	return o
}

// heldLock returns the file of Hold; nil if there is none.
func (o Owner) heldLock() *os.File {
	if o.lock == nil {
		return nil
	}
	return o.lock.Load()
}

// newMark returns the mark of one command.
func (o Owner) newMark() string {
	if o.mark == "" {
		return "none-" + rand.Text()
	}
	return o.mark + "-" + rand.Text()
}

package process

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync/atomic"
)

// MarkerVariable is the environment variable that every process of a command
// carries; its value starts with the owner's mark.
const MarkerVariable = "FORGE_RUN_ID"

// Owner is a service in all its lives. It marks the processes of its commands,
// so that its next life finds what a crash of this one left running.
type Owner struct {
	mark string
	lock *atomic.Pointer[os.File]
	// pulse is after which silence of this process its commands end, in nanoseconds
	maxSilence *atomic.Int64
}

// NewOwner returns the owner whose state is in the directory; no two services
// that live at the same time may use the same one.
func NewOwner(stateDir string) Owner {
	abs, err := filepath.Abs(stateDir)
	if err != nil {
		abs = stateDir
	}
	sum := sha256.Sum256([]byte(abs))
	return Owner{mark: hex.EncodeToString(sum[:8]), lock: &atomic.Pointer[os.File]{}, maxSilence: &atomic.Int64{}}
}

// Hold has every command that starts from now on hold a locked file too, until its last
// process is gone. So a next life that waits for the lock never works beside what this
// one left running, however it ended. The file must stay open.
func (o Owner) Hold(lock *os.File) {
	if o.lock != nil {
		o.lock.Store(lock)
	}
}

// heldLock returns the locked file; nil if there is none.
func (o Owner) heldLock() *os.File {
	if o.lock == nil {
		return nil
	}
	return o.lock.Load()
}

// newMark returns the mark of one command. The zero Owner's are found by no Sweep.
func (o Owner) newMark() string {
	if o.mark == "" {
		return "none-" + rand.Text()
	}
	return o.mark + "-" + rand.Text()
}

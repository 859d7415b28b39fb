package process

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
)

// MarkerVariable is the environment variable that every process of a command
// carries; its value starts with the owner's mark.
const MarkerVariable = "FORGE_RUN_ID"

// Owner is a service in all its lives. It marks the processes of its commands,
// so that its next life finds what a crash of this one left running.
type Owner struct {
	mark string
}

// NewOwner returns the owner whose state is in the directory; no two services
// that live at the same time may use the same one.
func NewOwner(stateDir string) Owner {
	abs, err := filepath.Abs(stateDir)
	if err != nil {
		abs = stateDir
	}
	sum := sha256.Sum256([]byte(abs))
	return Owner{mark: hex.EncodeToString(sum[:8])}
}

// run returns the mark of one command. The zero Owner's are found by no Sweep.
func (o Owner) run() string {
	if o.mark == "" {
		return "none-" + rand.Text()
	}
	return o.mark + "-" + rand.Text()
}

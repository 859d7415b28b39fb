package remote

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/pfl-forge/pfl-forge/agent/process"
)

// order is the first frame that Run sends: the command, and the directories that it
// needs.
type order struct {
	// Path is absolute, as this machine knows it; both ends have the same image.
	Path string
	Args []string
	// Dir is absolute, in one of the directories of Sent or in the image.
	Dir string
	Env []string
	// Stdin is the command's input. HasStdin tells an empty one from none.
	Stdin       []byte
	HasStdin    bool
	MergeStderr bool
	Limits      process.Limits
	// Listen is an address of loopback whose connections go to the service; empty:
	// there is none.
	Listen string
	// Sent are directories whose content follows.
	Sent []string
	// Returned are those of Sent whose content is sent back at the end.
	Returned []string
	// Empty are directories that are only made, for caches.
	Empty []string
}

// ending is the last frame that Serve sends before the files.
type ending struct {
	// Report is that of process.Run at the other end.
	Report process.Report
	// Cause names the error of process.Run in causes; empty: there is none.
	Cause string
	// Message is the error's text.
	Message string
}

// causes are the errors of process.Run that callers tell apart. All others are "other".
var causes = map[string]error{
	"wall": process.ErrWall, "idle": process.ErrIdle, "output": process.ErrOutput, "disk": process.ErrDisk,
	"survivors": process.ErrSurvivors, "sandbox": process.ErrSandbox, "lost": process.ErrLost,
}

// causeOf returns the name of an error in causes.
func causeOf(err error) string {
	for name, cause := range causes {
		if errors.Is(err, cause) {
			return name
		}
	}
	return "other"
}

// err returns the error that Serve saw; nil if the command ended by itself. The text is
// the other end's.
func (e *ending) err() error {
	if e.Cause == "" {
		return nil
	}
	if cause, known := causes[e.Cause]; known {
		return fmt.Errorf("%w: %s", cause, strings.TrimPrefix(e.Message, cause.Error()+": "))
	}
	return errors.New(e.Message)
}

// kind is the first byte of a frame.
// A kind that the reader does not know ends the connection.
type kind byte

// The kinds of frames.
const (
	frameOrder  kind = 'o' // an order, as JSON
	frameStdout kind = '1' // a line that was printed
	frameStderr kind = '2'
	frameEnd    kind = 'e' // an ending, as JSON
)

// maxFrame bounds a frame. A line is bounded by its own limit, below this.
const maxFrame = 64 << 20

// writeFrame writes one frame: kind, length (4 bytes, big endian), payload.
func writeFrame(w io.Writer, k kind, payload []byte) error {
	if len(payload) > maxFrame {
		return fmt.Errorf("a frame of %d bytes is longer than %d", len(payload), maxFrame)
	}
	head := [5]byte{byte(k)}
	binary.BigEndian.PutUint32(head[1:], uint32(len(payload)))
	if _, err := w.Write(append(head[:], payload...)); err != nil {
		return err
	}
	return nil
}

// writeJSON writes a frame whose payload is a value as JSON.
func writeJSON(w io.Writer, k kind, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFrame(w, k, payload)
}

// readFrame reads one frame of at most maxFrame bytes.
func readFrame(r io.Reader) (kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes is longer than %d", n, maxFrame)
	}
	payload := make([]byte, n)
	_, err := io.ReadFull(r, payload)
	return kind(head[0]), payload, err
}

// muxConfig returns how streams share the connection. Both ends notice within two
// intervals that the other one is gone.
func muxConfig() *yamux.Config {
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	cfg.KeepAliveInterval = 15 * time.Second
	cfg.ConnectionWriteTimeout = 30 * time.Second
	cfg.StreamOpenTimeout = 0
	cfg.StreamCloseTimeout = time.Hour
	cfg.MaxStreamWindowSize = 4 << 20
	return cfg
}

package natsd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// maxClientFile bounds the bytes of client.json that are read; the rest is
// ignored.
const maxClientFile = 4 << 10

// Endpoint says how a process connects to a running server. It is the content of
// client.json.
type Endpoint struct {
	// URL is nats://127.0.0.1:<port>.
	URL string `json:"url"`
	// Token authorises a client. It must not be logged or printed.
	Token string `json:"token"`
	// PID is the process of the server.
	PID int `json:"pid"`
	// ID is random and tells this start of a server from all others.
	ID string `json:"id"`
	// StartedAt is the time of the server's start, in UTC.
	StartedAt time.Time `json:"started_at"`
	// Purpose is that of the server's Config, as the lock has it.
	Purpose string `json:"-"`
}

// String returns the URL and the process. It leaves the token out.
func (e Endpoint) String() string { return fmt.Sprintf("%s (process %d)", e.URL, e.PID) }

// LogValue returns the fields without the token.
func (e Endpoint) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", e.URL), slog.Int("pid", e.PID), slog.String("id", e.ID))
}

// serverName returns the name of the server of a start. A server announces it before any
// authentication, so that Find knows whom it is about to show the token.
func serverName(id string) string { return "pfl-forge-" + id }

// writeEndpoint writes client.json in one step: a reader sees the old one, the new one or
// none, also after a power cut.
func writeEndpoint(d *storeDir, e Endpoint) error {
	const tmp = clientFile + ".tmp"
	b, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	_ = d.root.Remove(tmp)
	f, err := d.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := d.root.Rename(tmp, clientFile); err != nil {
		return err
	}
	return syncDir(d)
}

// syncDir makes a rename in the directory durable.
func syncDir(d *storeDir) error {
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// readEndpoint reads client.json. It refuses a file that other users can read or write: a
// client would send the token to whatever address they wrote.
func readEndpoint(d *storeDir) (Endpoint, error) {
	var e Endpoint
	path := filepath.Join(d.path, clientFile)
	info, err := d.root.Lstat(clientFile)
	if err != nil {
		return e, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return e, fmt.Errorf("%s is not a file of mode 0600", path)
	}
	f, err := d.root.Open(clientFile)
	if err != nil {
		return e, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxClientFile))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	return e, e.validate()
}

// validate refuses an incomplete endpoint and one on another machine: the token goes nowhere
// else.
func (e Endpoint) validate() error {
	u, err := url.Parse(e.URL)
	if err != nil {
		return err
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "nats" || u.Port() == "" || u.User != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%q is not a loopback address", e.URL)
	}
	if e.Token == "" || e.ID == "" || e.PID <= 0 {
		return errors.New("token, id or pid is missing")
	}
	return nil
}

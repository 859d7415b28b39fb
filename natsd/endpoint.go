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

const maxClientFile = 4 << 10

// Endpoint is how a process connects to the running server.
type Endpoint struct {
	URL       string    `json:"url"`        // nats://127.0.0.1:<port>
	Token     string    `json:"token"`      // authorises; never log it
	PID       int       `json:"pid"`        // the server's process
	ID        string    `json:"id"`         // of this start, never reused
	StartedAt time.Time `json:"started_at"` // UTC
}

// String leaves the token out.
func (e Endpoint) String() string { return fmt.Sprintf("%s (process %d)", e.URL, e.PID) }

// LogValue leaves the token out.
func (e Endpoint) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", e.URL), slog.Int("pid", e.PID), slog.String("id", e.ID))
}

// serverName is announced by the server before any authentication, so that a
// finder knows whom it is about to show the token.
func serverName(id string) string { return "pfl-forge-" + id }

// writeEndpoint replaces client.json in one step: a reader sees the old one, the
// new one or none, also after a power cut.
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

func syncDir(d *storeDir) error {
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

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

// validate refuses an address beyond this machine: the token goes nowhere else.
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

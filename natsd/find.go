package natsd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"time"
)

// ErrNotRunning is returned by [Find] if no server runs on the store.
var ErrNotRunning = errors.New("natsd: no server is running")

const (
	// findPatience bounds how long Find waits for a server that is just starting.
	findPatience = 2 * time.Second
	// dialTimeout bounds the check that a server answers.
	dialTimeout = time.Second
	// maxInfoLine bounds the first line that a server sends, in bytes.
	maxInfoLine = 64 << 10
)

// Find returns the endpoint of the server that runs on the store, in whatever
// process of this user. root and dir are as in [Config]. It waits, for two seconds
// at most, for a server that is just starting.
//
// What it returns was live: the lock was held, its owner wrote client.json, and
// the address answered with that owner's name. Otherwise the error is
// [ErrNotRunning], wrapped with the reason. A server may still stop right after.
func Find(ctx context.Context, root, dir string) (*Endpoint, error) {
	return find(ctx, root, dir, findPatience)
}

// find is Find with another patience.
func find(ctx context.Context, root, dir string, patience time.Duration) (*Endpoint, error) {
	d, err := openDir(root, dir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no store yet", ErrNotRunning)
	}
	if err != nil {
		return nil, err
	}
	defer d.close()
	deadline := time.Now().Add(patience)
	for {
		e, held, err := findOnce(ctx, d)
		if err == nil {
			return e, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("natsd: %w", ctx.Err())
		}
		if !held || time.Now().After(deadline) {
			return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// findOnce looks for the server once. held reports whether a process owns the store, so that
// the next look may find its server ready.
func findOnce(ctx context.Context, d *storeDir) (e *Endpoint, held bool, err error) {
	h, held, err := isHeld(d)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, errors.New("the store is unused")
	}
	if err != nil {
		return nil, false, err
	}
	if !held {
		return nil, false, errors.New("the process that ran it has ended")
	}
	ep, err := readEndpoint(d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, true, fmt.Errorf("process %d holds the store but is not ready: it starts, stops or hangs", h.PID)
	case err != nil:
		return nil, true, fmt.Errorf("process %d holds the store but its address is unreadable: %w", h.PID, err)
	case ep.ID != h.ID || ep.PID != h.PID || !alive(h.PID):
		return nil, true, fmt.Errorf("process %d holds the store but the address is of an earlier one", h.PID)
	}
	ep.Purpose = h.Purpose
	if err := checkServer(ctx, ep); err != nil {
		return nil, true, fmt.Errorf("process %d holds the store but does not answer: %w", h.PID, err)
	}
	return &ep, true, nil
}

// checkServer returns an error unless the server of this endpoint listens on its address. It
// does not show the token: after a crash the port may be another program's.
func checkServer(ctx context.Context, e Endpoint) error {
	u, err := url.Parse(e.URL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := bufio.NewReader(io.LimitReader(conn, maxInfoLine)).ReadString('\n')
	if err != nil {
		return err
	}
	var info struct {
		ServerName string `json:"server_name"`
	}
	body, ok := strings.CutPrefix(line, "INFO ")
	if !ok || json.Unmarshal([]byte(body), &info) != nil || info.ServerName != serverName(e.ID) {
		return errors.New("another program listens on its address")
	}
	return nil
}

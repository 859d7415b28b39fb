package natsd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A probe is a file of some blocks, so that a full disk is noticed.
const (
	probeFile = "probe"
	probeSize = 16 << 10
)

// ErrStopped is returned by [Server.Healthy] after a shutdown has begun.
var ErrStopped = errors.New("natsd: server is stopped")

// Healthy writes and fsyncs a probe, asks the server about every stream, and checks that the
// store is still there and has room left. The error says what to do. A disk that hangs makes
// it return when ctx ends. Several goroutines may call it.
//
// After a failed write the server refuses all later ones until it is started again: Healthy
// then returns that error also when the disk is fine again.
func (s *Server) Healthy(ctx context.Context) error {
	result := make(chan error, 1) // a hanging disk must not hang the caller
	go func() { result <- s.healthy() }()
	select {
	case <-s.closing:
		return ErrStopped
	case err := <-result:
		if err != nil && s.isClosing() {
			return ErrStopped // it failed because the store was taken from under it
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("natsd: disk of %s does not answer: %w", s.dir.path, ctx.Err())
	}
}

// healthy is Healthy, as long as the disk takes.
func (s *Server) healthy() error {
	if !s.lock.current() {
		return fmt.Errorf("natsd: store %s was removed or replaced while in use: stop, nothing more is kept", s.dir.path)
	}
	if err := s.probe(); err != nil {
		return err
	}
	if err := s.streams(); err != nil {
		return err
	}
	return s.room()
}

// watch checks the streams after each error that the server logs, and closes failed when one
// cannot be written any more. It ends then, or when the server is stopped.
func (s *Server) watch(erred <-chan struct{}) {
	for {
		select {
		case <-s.closing:
			return
		case <-erred:
		}
		if err := s.streams(); err != nil && !s.isClosing() {
			s.log.Error("the store has failed", "error", err)
			close(s.failed)
			return
		}
	}
}

// streams returns the error of a stream that the server cannot write any more.
func (s *Server) streams() error {
	if h := s.nats.Healthz(nil); h.Error != "" {
		return fmt.Errorf("natsd: %s: free space or repair the disk, then start again", h.Error)
	}
	return nil
}

// room returns an error when 95% of MaxStore are used: while something can still be written,
// so that a person can act.
func (s *Server) room() error {
	js, err := s.nats.Jsz(nil)
	if err != nil {
		return fmt.Errorf("natsd: %w", err)
	}
	if limit := uint64(s.cfg.MaxStore); js.Store > limit-limit/20 {
		return fmt.Errorf("natsd: store %s holds %d of %d bytes: clean finished intents", s.dir.path, js.Store, limit)
	}
	return nil
}

// isClosing reports whether Shutdown has begun.
func (s *Server) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// probe writes a file durably and removes it.
func (s *Server) probe() error {
	s.probing.Lock()
	defer s.probing.Unlock()
	_ = s.dir.root.Remove(probeFile) // of a killed process
	f, err := s.dir.root.OpenFile(probeFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(make([]byte, probeSize))
		err = errors.Join(err, f.Sync(), f.Close(), s.dir.root.Remove(probeFile))
	}
	if err != nil {
		return explain("write", filepath.Join(s.dir.path, probeFile), err)
	}
	return nil
}

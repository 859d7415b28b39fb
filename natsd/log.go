package natsd

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// natsLog writes the server's lines to a slog.Logger; it implements the server's Logger. The
// server is chatty when all is well, so its notices become debug lines.
type natsLog struct {
	log *slog.Logger
	// erred has room for one signal: an error was logged since the last receive.
	erred chan struct{}

	mu sync.Mutex
	// last is the last error that was logged.
	last string
}

// newNatsLog returns a natsLog that writes to log.
func newNatsLog(log *slog.Logger) *natsLog {
	return &natsLog{log: log, erred: make(chan struct{}, 1)}
}

// Noticef, Debugf, Tracef and Warnf implement the server's Logger.
func (l *natsLog) Noticef(format string, v ...any) { l.log.Debug(line(format, v)) }
func (l *natsLog) Debugf(format string, v ...any)  { l.log.Debug(line(format, v)) }
func (l *natsLog) Tracef(format string, v ...any)  { l.log.Debug(line(format, v)) }
func (l *natsLog) Warnf(format string, v ...any)   { l.log.Warn(line(format, v)) }

// Errorf logs an error and wakes who watches the store.
func (l *natsLog) Errorf(format string, v ...any) {
	msg := line(format, v)
	l.keep(msg)
	l.log.Error(msg)
}

// Fatalf logs an error. It does not exit, as the server's own logger does: Start notices that
// the server is not ready and returns the line as its error.
func (l *natsLog) Fatalf(format string, v ...any) { l.Errorf(format, v...) }

// keep remembers an error and signals it.
func (l *natsLog) keep(msg string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = msg
	select {
	case l.erred <- struct{}{}:
	default:
	}
}

// cause returns the last error, as the reason why a server did not start.
func (l *natsLog) cause() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return "it gave no reason"
	}
	return l.last
}

// line returns a line of the server with its name in front.
func line(format string, v []any) string {
	return "nats-server: " + strings.TrimSpace(fmt.Sprintf(format, v...))
}

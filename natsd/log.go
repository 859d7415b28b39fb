package natsd

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// natsLog turns the server's lines into slog's. The server is chatty when all is
// well, so its notices are debug lines here.
type natsLog struct {
	log   *slog.Logger
	erred chan struct{} // of capacity 1: an error was logged since the last look

	mu   sync.Mutex
	last string // the last error
}

func newNatsLog(log *slog.Logger) *natsLog {
	return &natsLog{log: log, erred: make(chan struct{}, 1)}
}

func (l *natsLog) Noticef(format string, v ...any) { l.log.Debug(line(format, v)) }
func (l *natsLog) Debugf(format string, v ...any)  { l.log.Debug(line(format, v)) }
func (l *natsLog) Tracef(format string, v ...any)  { l.log.Debug(line(format, v)) }
func (l *natsLog) Warnf(format string, v ...any)   { l.log.Warn(line(format, v)) }

func (l *natsLog) Errorf(format string, v ...any) {
	msg := line(format, v)
	l.keep(msg)
	l.log.Error(msg)
}

// Fatalf does not exit: Start notices and returns the line as its error.
func (l *natsLog) Fatalf(format string, v ...any) { l.Errorf(format, v...) }

func (l *natsLog) keep(msg string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = msg
	select {
	case l.erred <- struct{}{}:
	default:
	}
}

func (l *natsLog) cause() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return "it gave no reason"
	}
	return l.last
}

func line(format string, v []any) string {
	return "nats-server: " + strings.TrimSpace(fmt.Sprintf(format, v...))
}

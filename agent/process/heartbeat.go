package process

import (
	"io"
	"time"
)

// EndWhenStopped makes every command that starts from now on end when this process has
// not run for that long, for example because it was stopped: another replica has taken
// over its work by then. On Linux only.
func (o Owner) EndWhenStopped(after time.Duration) {
	if o.maxSilence != nil {
		o.maxSilence.Store(int64(after))
	}
}

// silenceLimit returns the duration of EndWhenStopped; 0 means none.
func (o Owner) silenceLimit() time.Duration {
	if o.maxSilence == nil {
		return 0
	}
	return time.Duration(o.maxSilence.Load())
}

// sendHeartbeats writes to w five times per maxSilence until done is closed, so that
// the supervisor sees that this process runs.
func sendHeartbeats(w io.Writer, pulse time.Duration, done <-chan struct{}) {
	if pulse <= 0 {
		return
	}
	t := time.NewTicker(pulse / 5)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
			if _, err := w.Write([]byte{'\n'}); err != nil {
				return
			}
		}
	}
}

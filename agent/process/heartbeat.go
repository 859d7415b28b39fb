package process

import (
	"io"
	"time"
)

// EndWhenStopped has every command that starts from now on end when this process has not
// run for so long, such as because it was stopped: somebody else does its work by then. On Linux only.
func (o Owner) EndWhenStopped(after time.Duration) {
	if o.maxSilence != nil {
		o.maxSilence.Store(int64(after))
	}
}

// silenceLimit returns how long its owner may be silent, 0 for ever.
func (o Owner) silenceLimit() time.Duration {
	if o.maxSilence == nil {
		return 0
	}
	return time.Duration(o.maxSilence.Load())
}

// sendHeartbeats shows the reader of w that this process runs, until done is closed.
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

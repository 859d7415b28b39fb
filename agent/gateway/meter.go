package gateway

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/pfl-forge/pfl-forge"
)

// Bounds of the data that is buffered for counting. A longer line or answer is
// forwarded all the same, uncounted.
const (
	maxEvent = 4 << 20  // a line of a stream
	maxWhole = 64 << 20 // an answer that is no stream
)

// meter counts the tokens that a response reports while it passes.
type meter struct {
	api *api
	// report receives each increase as soon as it is known.
	report func(model string, more forge.Usage)
	stream bool
	// length is the length of an answer that is no stream; negative if it is not known.
	length int64

	// buffer has the current line so far, or all of an answer that is no stream.
	buffer   []byte
	received int64
	// oversized says that the current line exceeds maxEvent and is skipped.
	oversized bool
	count     responseUsage
	reported  forge.Usage
	// ended says that the answer came to its end, and rejected that there is none, or an error.
	ended, rejected bool
}

// responseUsage has the latest totals that one response reported.
type responseUsage struct {
	model string
	usage forge.Usage
	// total says that the usage is that of the whole answer, if that ends here.
	total bool
}

// complete reports whether the answer is whole and says what it has cost.
func (m *meter) complete() bool { return m.ended && m.count.total }

// wrap makes the meter read a response's body, and returns an error for a response that
// must not pass: a redirect could send the key elsewhere, and a compressed answer could
// not be counted.
func (m *meter) wrap(resp *http.Response) error {
	resp.Header.Del("Set-Cookie")
	switch e := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return errRedirect
	case resp.StatusCode >= 400:
		m.rejected = true
		return nil // nothing is counted in an error
	case e != "" && e != "identity":
		return errEncoding
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	m.stream = kind == "text/event-stream"
	m.length = resp.ContentLength
	resp.Body = &meteredBody{body: resp.Body, meter: m}
	return nil
}

// meteredBody is a response body that a meter reads along.
type meteredBody struct {
	body  io.ReadCloser
	meter *meter
}

// Read counts a part of the answer before it returns it, so that a client that has an
// answer finds it counted.
func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.meter.ended = errors.Is(err, io.EOF)
	b.meter.read(p[:n], err != nil)
	return n, err
}

func (b *meteredBody) Close() error { return b.body.Close() }

// read takes the next part of the answer; last says that it is the end.
func (m *meter) read(p []byte, last bool) {
	m.received += int64(len(p))
	if m.stream {
		m.lines(p)
	} else if m.received <= maxWhole {
		if m.buffer = append(m.buffer, p...); last || m.received == m.length {
			m.api.count(m.buffer, &m.count)
		}
	}
	if more := usageSince(m.count.usage, m.reported); more != (forge.Usage{}) {
		m.reported = m.count.usage
		m.report(m.count.model, more)
	}
}

// usageSince returns the difference between two totals.
func usageSince(u, earlier forge.Usage) forge.Usage {
	u.InputTokens -= earlier.InputTokens
	u.OutputTokens -= earlier.OutputTokens
	u.CacheReadTokens -= earlier.CacheReadTokens
	u.CacheWriteTokens -= earlier.CacheWriteTokens
	return u
}

// lines splits a stream into lines, without copying those that arrive whole.
func (m *meter) lines(p []byte) {
	for {
		line, rest, found := bytes.Cut(p, []byte("\n"))
		// The rest of an oversized line is skipped up to its end.
		if m.oversized = m.oversized || len(m.buffer)+len(line) > maxEvent; m.oversized {
			m.buffer = m.buffer[:0]
		} else if !found || len(m.buffer) > 0 {
			m.buffer = append(m.buffer, line...)
			line = m.buffer
		}
		if !found {
			return
		}
		if !m.oversized {
			m.event(line)
		}
		m.buffer, m.oversized, p = m.buffer[:0], false, rest
	}
}

// event counts one line of a stream. Most have no usage and are not parsed.
func (m *meter) event(line []byte) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if ok && (bytes.Contains(data, []byte(`"usage`)) || bytes.Contains(data, []byte(`"usageMetadata`))) {
		m.api.count(data, &m.count)
	}
}

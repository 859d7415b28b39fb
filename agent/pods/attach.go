package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/coder/websocket"
)

// The channels of a pod's streams: the first byte of each message.
const (
	channelStdin  = 0
	channelStdout = 1
	channelStderr = 2
)

// maxMessage bounds one message of the streams, both ways. The kubelet sends 32 KiB.
const maxMessage = 64 << 10

// streams are the standard streams of a pod's container, as one connection: what is
// written is its stdin, what is read its stdout.
type streams struct {
	conn *websocket.Conn
	rest []byte // of the last message of stdout
	// first is called for each message of stdout.
	first func()

	mu     sync.Mutex
	stderr []byte // its end
}

// attach connects to the streams of a container that runs.
func (a *API) attach(ctx context.Context, client *http.Client, namespace, pod string) (*streams, error) {
	header, err := a.header()
	if err != nil {
		return nil, err
	}
	header.Del("Accept") // the API server answers 406 otherwise: streams are no JSON
	header.Del("Content-Type")
	query := url.Values{"container": {container}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}
	conn, res, err := websocket.Dial(ctx, a.URL+podPath(namespace, pod)+"/attach?"+query.Encode(), &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: header,
		Subprotocols: []string{"v5.channel.k8s.io", "v4.channel.k8s.io"}, CompressionMode: websocket.CompressionDisabled,
	})
	if res != nil && res.Body != nil {
		_ = res.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("attach to the pod: %w", err)
	}
	if conn.Subprotocol() == "" {
		_ = conn.CloseNow()
		return nil, errors.New("attach to the pod: the API server knows no protocol for streams that we know")
	}
	conn.SetReadLimit(1 << 20)
	return &streams{conn: conn, first: func() {}}, nil
}

// Read reads from stdout. It keeps the end of stderr for said.
func (s *streams) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		_, message, err := s.conn.Read(context.Background())
		if err != nil {
			return 0, s.ended(err)
		}
		if len(message) == 0 {
			continue
		}
		switch data := message[1:]; message[0] {
		case channelStdout:
			s.first()
			s.rest = data
		case channelStderr:
			s.keep(data)
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// keep adds to stderr, of which the end is kept.
func (s *streams) keep(more []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const most = 4 << 10
	s.stderr = append(s.stderr, more...)
	s.stderr = s.stderr[max(0, len(s.stderr)-most):]
}

// said returns the end of the container's stderr.
func (s *streams) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(string(s.stderr))
}

// ended returns the error of a connection that ended.
func (s *streams) ended(err error) error {
	if websocket.CloseStatus(err) == websocket.StatusNormalClosure || errors.Is(err, io.EOF) {
		return io.EOF
	}
	return err
}

// Write writes to stdin.
func (s *streams) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := min(len(p), maxMessage-1)
		message := append(make([]byte, 0, n+1), channelStdin)
		if err := s.conn.Write(context.Background(), websocket.MessageBinary, append(message, p[:n]...)); err != nil {
			return written, err
		}
		written += n
		p = p[n:]
	}
	return written, nil
}

// Close ends the connection at once. The container then sees the end of its stdin.
func (s *streams) Close() error { return s.conn.CloseNow() }

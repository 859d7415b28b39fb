package slack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// Socket takes the acts of people through a connection that we open, where no
// request of Slack reaches us: Socket Mode.
type Socket struct {
	// Client opens connections with the token of the app.
	Client *Client
	// Name is that of the chat, under which deliveries are stored.
	Name string
	// Store makes a delivery durable. What it stored is acknowledged, and nothing else.
	Store func(context.Context, deliveries.Delivery) (known bool, err error)
	// Log is told of connections that fail.
	Log *slog.Logger
	// First is the first pause after a failure, and Most the longest. Zero
	// values are a second and a minute.
	First, Most time.Duration
}

const (
	// maxEnvelope bounds an envelope, in bytes.
	maxEnvelope = 1 << 20
	// dialTime bounds the opening of a connection, and quiet how long one may
	// say nothing: Slack pings every few seconds.
	dialTime = 20 * time.Second
	quiet    = time.Minute
	// ackTime is how long an acknowledgement may take to be written.
	ackTime = 5 * time.Second
)

// envelope is a message of Socket Mode.
type envelope struct {
	// Type is hello, disconnect, interactive or slash_commands; others are
	// acknowledged, and lead to nothing.
	Type string `json:"type"`
	// ID is that of the envelope, which is another one when the same payload is sent again.
	ID string `json:"envelope_id"`
	// Payload is the same as by HTTP. It is stored as it came.
	Payload json.RawMessage `json:"payload"`
	// Reason says why the connection is about to end.
	Reason string `json:"reason"`
}

// errRefresh says that Slack asked for another connection, as it does every few hours.
var errRefresh = errors.New("another connection is asked for")

// Run keeps a connection open until ctx ends. It returns an error only for an
// app that Slack does not let in.
func (s *Socket) Run(ctx context.Context) error {
	first, most := s.First, s.Most
	if first == 0 {
		first = time.Second
	}
	if most == 0 {
		most = time.Minute
	}
	pause := first
	for ctx.Err() == nil {
		served, err := s.connection(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was ended: the error says no more than that
		case errors.Is(err, errDenied):
			return err
		case served:
			pause = first
		}
		wait := pause
		if parked, ok := errors.AsType[*forges.ParkedError](err); ok {
			wait = max(wait, min(time.Until(parked.Until), most))
		}
		level := slog.LevelWarn
		if errors.Is(err, errRefresh) {
			level = slog.LevelDebug
		}
		s.Log.Log(ctx, level, "the connection to Slack ended; there is another one soon", "chat", s.Name, "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, most)
	}
	return nil
}

// connection opens a connection and takes what comes through it until it ends.
// served says that Slack said hello.
func (s *Socket) connection(ctx context.Context) (served bool, err error) {
	var got struct {
		URL string `json:"url"`
	}
	if err := s.Client.call(ctx, s.Client.app, "apps.connections.open", "", map[string]any{}, &got); err != nil {
		return false, err
	}
	if err := s.Client.checkSocket(got.URL); err != nil {
		return false, err
	}
	// A connection that says nothing any more, not even a ping, is gone.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	alive := time.AfterFunc(quiet, stop)
	defer alive.Stop()
	dial, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	// The address is a ticket: it is in no error.
	conn, resp, err := websocket.Dial(dial, got.URL, &websocket.DialOptions{
		HTTPClient:     &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		OnPingReceived: func(context.Context, []byte) bool { alive.Reset(quiet); return true },
	})
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return false, errors.New("the connection that Slack offered is not taken")
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxEnvelope)
	for {
		e, err := s.next(ctx, conn)
		if err != nil {
			return served, err
		}
		alive.Reset(quiet)
		switch e.Type {
		case "hello":
			served = true
		case "disconnect":
			return served, fmt.Errorf("%w: %.40q", errRefresh, e.Reason)
		default:
			if err := s.take(ctx, conn, e); err != nil {
				return served, err
			}
		}
	}
}

// next returns the next envelope. A message that is none is passed over: Slack
// may send kinds that came later than this program.
func (s *Socket) next(ctx context.Context, conn *websocket.Conn) (*envelope, error) {
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return nil, fmt.Errorf("the connection ended: %w", err)
		}
		e := &envelope{}
		if kind == websocket.MessageText && json.Unmarshal(data, e) == nil {
			return e, nil
		}
	}
}

// take stores an envelope and acknowledges it. One that could not be stored is not acknowledged, so
// that Slack sends it again. An envelope that comes twice has the same payload, and is stored once.
func (s *Socket) take(ctx context.Context, conn *websocket.Conn, e *envelope) error {
	if e.ID == "" || len(e.ID) > maxToken {
		return nil
	}
	if e.Type == "interactive" || e.Type == "slash_commands" {
		sum := sha256.Sum256(e.Payload)
		_, err := s.Store(ctx, deliveries.Delivery{
			Hook: s.Name, ID: hex.EncodeToString(sum[:16]), Event: chat.Socket, ContentType: "application/json", Body: e.Payload,
		})
		if err != nil {
			return fmt.Errorf("what came could not be stored: %w", err)
		}
	}
	data, err := json.Marshal(map[string]string{"envelope_id": e.ID})
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	if err := conn.Write(within, websocket.MessageText, data); err != nil {
		return fmt.Errorf("the connection ended: %w", err)
	}
	return nil
}

// checkSocket returns an error for an address that is no place of Slack: the
// connection carries what people decide.
func (c *Client) checkSocket(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return errors.New("no address for a connection is offered by Slack")
	}
	if c.cfg.URL != "" && u.Host == c.replies.Host && (u.Scheme == "wss" || u.Scheme == "ws" && c.replies.Scheme == "http") {
		return nil // a server of tests, or of one's own: without TLS only where its other requests are, too
	}
	if u.Scheme != "wss" || !isOfSlack(u.Hostname()) {
		return fmt.Errorf("the address for a connection is not of Slack but of %.100q", u.Host)
	}
	return nil
}

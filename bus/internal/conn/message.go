package conn

import (
	"fmt"

	"github.com/nats-io/nats.go"
)

// TooLargeError says that a message is larger than the server takes.
type TooLargeError struct {
	// Subject is where it would have gone.
	Subject string
	// Size is that of the data, and Limit the server's for a whole message,
	// both in bytes.
	Size  int
	Limit int64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a message of %d bytes for %s is larger than the server's limit of %d; raise its max_payload", e.Size, e.Subject, e.Limit)
}

// headerRoom bounds the headers of a message, in bytes. The server's limit is
// on headers and data together.
const headerRoom = 4 << 10

// Message returns a message, or a *TooLargeError.
func (c *Conn) Message(subject string, data []byte) (*nats.Msg, error) {
	if limit := c.NC.MaxPayload(); limit > 0 && int64(len(data)) > limit-headerRoom {
		return nil, &TooLargeError{Subject: subject, Size: len(data), Limit: limit}
	}
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}, nil
}

package callout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/proof"
)

// maxRequest bounds a request to certify, in bytes.
const maxRequest = 16 << 10

// request asks for a certificate.
type request struct {
	// Token is the text that the issuer has signed.
	Token string `json:"token"`
	// Key is the public key that will sign for the person.
	Key []byte `json:"key"`
}

// reply has the certificate, or says why there is none.
type reply struct {
	// Certificate is the text of a proof.Certificate.
	Certificate string `json:"certificate,omitempty"`
	// Error is for the person, who has shown a token to be here at all.
	Error string `json:"error,omitempty"`
}

// certify returns the certificate that a request asks for, which came on the subject
// of a key. The token is verified once more: that the server lets this connection
// publish here is not all that a certificate is made on.
func (s *service) certify(ctx context.Context, key string, data []byte) (proof.Certificate, error) {
	var req request
	if len(data) > maxRequest || json.Unmarshal(data, &req) != nil {
		return proof.Certificate{}, fmt.Errorf("want a token and a key, in JSON of at most %d bytes", maxRequest)
	}
	known, err := s.Book.Verify(ctx, req.Token, key)
	if err != nil {
		return proof.Certificate{}, err
	}
	if !known.Account.Login {
		return proof.Certificate{}, errors.New("the token is a service's, which signs by its nkey")
	}
	all, err := s.Accounts()
	if err != nil {
		return proof.Certificate{}, err
	}
	if err := free(known.Account, all); err != nil {
		return proof.Certificate{}, err
	}
	now := s.Now()
	c, err := proof.Certify(s.key, proof.Certificate{
		Account: known.Account.Name, Login: known.Issuer, Connection: key, Key: req.Key, From: now, Until: now.Add(known.Session),
	})
	if err == nil {
		s.Log.InfoContext(ctx, "a login begins", "account", c.Account, "issuer", c.Login, "until", c.Until)
	}
	return c, err
}

// personAsks answers a person who logs in, in the inbox of the key and nowhere else.
func (s *service) personAsks(ctx context.Context, m *nats.Msg) error {
	key, err := subjects.ParseCertify(m.Subject)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(m.Reply, access.LoginInbox(key)+".") {
		return errors.New("the answer is wanted elsewhere than in the inbox of the key")
	}
	var r reply
	if c, err := s.certify(ctx, key, m.Data); err != nil {
		s.Log.WarnContext(ctx, "a login is refused", "error", err)
		r.Error = err.Error()
	} else {
		r.Certificate = c.String()
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return m.Respond(data)
}

// Certify has the key of a login certified, over a connection that shows the same
// token by the nkey whose public part is given. It returns the certificate.
func Certify(ctx context.Context, nc *nats.Conn, token, connection string, key *proof.Key) (proof.Certificate, error) {
	data, err := json.Marshal(request{token, key.Public()})
	if err != nil {
		return proof.Certificate{}, err
	}
	m, err := nc.RequestWithContext(ctx, subjects.Certify(connection), data)
	if err != nil {
		return proof.Certificate{}, err
	}
	var answer reply
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return proof.Certificate{}, fmt.Errorf("the answer of the auth service: %w", err)
	}
	if answer.Error != "" {
		return proof.Certificate{}, errors.New(answer.Error)
	}
	c, err := proof.ParseCertificate(answer.Certificate)
	if err == nil && (!c.Key.Equal(key.Public()) || c.Connection != connection) {
		err = errors.New("the certificate is for other keys")
	}
	return c, err
}

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
	// Token is what the issuer has signed.
	Token string `json:"token"`
	// Key is the public key of what the person will sign.
	Key []byte `json:"key"`
}

// reply has the certificate, or says why there is none.
type reply struct {
	// Certificate is the text of a proof.Certificate.
	Certificate string `json:"certificate,omitempty"`
	// Error is for the person.
	Error string `json:"error,omitempty"`
}

// certify answers a request on the subject of a key.
func (s *service) certify(ctx context.Context, m *nats.Msg) (*reply, error) {
	key, err := subjects.ParseCertify(m.Subject)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(m.Reply, access.LoginInbox(key)+".") {
		return nil, errors.New("the answer is wanted elsewhere than in the inbox of the key")
	}
	var req request
	if len(m.Data) > maxRequest || json.Unmarshal(m.Data, &req) != nil {
		return &reply{Error: fmt.Sprintf("want a token and a key, in JSON of at most %d bytes", maxRequest)}, nil
	}
	known, err := s.Book.Verify(ctx, req.Token, key)
	if err == nil && !known.Account.Login {
		err = errors.New("the token is a service's, which signs by its nkey")
	}
	var all []access.Account
	if err == nil {
		all, err = s.Accounts()
	}
	if err == nil {
		err = free(known.Account, all)
	}
	if err != nil {
		return &reply{Error: err.Error()}, nil
	}
	now := s.Now()
	c, err := proof.Certify(s.key, proof.Certificate{
		Account: known.Account.Name, Login: known.Issuer, Connection: key, Key: req.Key, From: now, Until: now.Add(known.Session),
	})
	if err != nil {
		return &reply{Error: err.Error()}, nil
	}
	s.Log.Info("a login begins", "account", c.Account, "issuer", c.Login, "until", c.Until)
	return &reply{Certificate: c.String()}, nil
}

// Certify has the key of a login certified, over a connection that shows the same token by the nkey whose public part is given. It
// returns the certificate.
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

package callout

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/proof"
)

// toCertify bounds a connection by which a person has the key of a login certified.
const toCertify = time.Minute

// admission says as which account a connection is let in, and until when. The server
// closes it then, and the client makes a new one, which is decided about by the
// rules of that time.
type admission struct {
	name   string
	rights []access.Right
	until  time.Time
}

// admit decides about one connection. What proves a person is a certificate with the
// key that it is for; the token of an issuer does no more than to have that key
// certified. A service comes by its token alone, as Kubernetes replaces that by
// itself.
func (s *service) admit(ctx context.Context, req *jwt.AuthorizationRequestClaims) (*admission, error) {
	key, err := provenKey(req)
	if err != nil {
		return nil, err
	}
	token := req.ConnectOptions.Token
	switch {
	case token == "":
		return nil, errors.New("the nkey, the password or the lack of either is no account's, and there is no token")
	case proof.IsCertificate(token):
		return s.certified(token, key)
	}
	known, err := s.Book.Verify(ctx, token, key)
	if err != nil {
		return nil, err
	}
	all, err := s.Accounts()
	if err != nil {
		return nil, err
	}
	if !known.Account.Login {
		// For no longer than the token: a pod that is gone gets no other one,
		// and its replicas read theirs anew.
		until := s.Now().Add(s.Lifetime)
		if known.Until.Before(until) {
			until = known.Until
		}
		return &admission{known.Account.Name, known.Account.Rights(all), until}, nil
	}
	if err := free(known.Account, all); err != nil {
		return nil, err
	}
	if key == "" {
		return nil, errors.New("a person's token comes with the key that is to be certified, as pfl-forge login does")
	}
	return &admission{"login of " + known.Account.Name, access.Login(key), s.Now().Add(toCertify)}, nil
}

// certified decides about a connection with a certificate, by the rules as they are
// now.
func (s *service) certified(text, key string) (*admission, error) {
	c, err := proof.ParseCertificate(text)
	now := s.Now()
	switch {
	case err != nil:
		return nil, err
	case !c.Holds() || !c.Issuer.Equal(s.key.Public()):
		return nil, errors.New("the certificate is not one of ours")
	case c.Connection != key:
		return nil, errors.New("the certificate is for another key than the one that made the connection")
	case now.Before(c.From.Add(-skew)) || !now.Before(c.Until):
		return nil, fmt.Errorf("the login of %s has ended", c.Account)
	}
	account, err := s.Book.Person(c.Login, c.Account)
	if err != nil {
		return nil, err
	}
	all, err := s.Accounts()
	if err != nil {
		return nil, err
	}
	if err := free(account, all); err != nil {
		return nil, err
	}
	until := now.Add(s.Lifetime)
	if c.Until.Before(until) {
		until = c.Until
	}
	return &admission{account.Name, account.Rights(all), until}, nil
}

// skew is how far the clocks of two replicas may be apart.
const skew = time.Minute

// free returns an error if a person who logs in has the name of an account that the
// server's configuration has: they would be taken for one another.
func free(person access.Account, all []access.Account) error {
	if slices.ContainsFunc(all, func(a access.Account) bool { return a.Name == person.Name }) {
		return fmt.Errorf("%s has an account with a key of its own: take that out of auth.conf, or give the person another name", person.Name)
	}
	return nil
}

// provenKey returns the public nkey that the other end has proven to hold by signing
// the server's challenge; empty if it claims none.
func provenKey(req *jwt.AuthorizationRequestClaims) (string, error) {
	key := req.ConnectOptions.Nkey
	if key == "" {
		return "", nil
	}
	public, err := nkeys.FromPublicKey(key)
	if err != nil || !nkeys.IsValidPublicUserKey(key) {
		return "", errors.New("the nkey is none of a user")
	}
	signature, err := base64.RawURLEncoding.DecodeString(req.ConnectOptions.SignedNonce)
	if err != nil || req.ClientInformation.Nonce == "" || public.Verify([]byte(req.ClientInformation.Nonce), signature) != nil {
		return "", errors.New("the challenge was not signed by the nkey")
	}
	return key, nil
}

// answer returns the text that the server gets: a credential, or that there is none.
// A client is never told why it is not let in: the reason may be about another
// person.
func (s *service) answer(req *jwt.AuthorizationRequestClaims, a *admission) (string, error) {
	out := jwt.NewAuthorizationResponseClaims(req.UserNkey)
	out.Audience = req.Server.ID
	if a == nil {
		out.Error = "not let in; the log of the auth service says why"
		return out.Encode(s.issuer)
	}
	user := jwt.NewUserClaims(req.UserNkey)
	user.Name, user.Audience, user.Expires = a.name, globalAccount, a.until.Unix()
	publish, deny, subscribe := access.Subjects(a.rights)
	user.Pub.Allow, user.Pub.Deny, user.Sub.Allow = publish, deny, subscribe
	var err error
	if out.Jwt, err = user.Encode(s.issuer); err != nil {
		return "", err
	}
	return out.Encode(s.issuer)
}

// globalAccount is the account, in the sense of nats-server, that all of ours are
// users of.
const globalAccount = "$G"

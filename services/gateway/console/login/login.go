// Package login has people sign in to the console with their account at an OpenID Connect issuer.
//
// What belongs to a login under way is in a cookie of the browser that began it,
// so any gateway with the same key can end it, and no gateway remembers one. The
// cookie is no secret before its browser: it has only what the flow wants the
// browser's side to know, and a hash with the key keeps others from making one.
package login

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/identity"
)

const (
	// Cookie is the name of the cookie of a login, for this very origin only.
	Cookie = "__Host-pfl-forge-login"
	// Lasts is for how long a login may be under way.
	Lasts = 10 * time.Minute
	// Again is when a login that was refused with ErrOften can be ended: codes
	// are sent twice in a second.
	Again = time.Second
	// maxCookie bounds it, in bytes.
	maxCookie = 4000
	// version is the first part of a cookie.
	version = "1"
)

// ErrOften says that too many codes were sent to the issuer, by whomever, and
// that of this login was not: it can be ended later.
var ErrOften = identity.ErrOften

// ErrOther says that what came back does not belong to a login of this browser.
var ErrOther = errors.New("this login was not started in this browser, or took longer than ten minutes: log in again")

// Config says with which accounts people sign in.
type Config struct {
	// Site is the page of the issuer; nil where people sign in with a token alone.
	Site *identity.Site
	// Name is that of the issuer among people.
	Name string
	// From is the issuer as sessions are bound to it: another one's names are
	// those of other people.
	From string
}

// Issuer is where people log in. It is safe for concurrent use.
type Issuer struct {
	site *identity.Site
	mac  func(purpose string, data []byte) string
	now  func() time.Time
}

// New returns an Issuer. mac returns a hash with the key of the console.
func New(cfg Config, mac func(purpose string, data []byte) string, now func() time.Time) *Issuer {
	return &Issuer{cfg.Site, mac, now}
}

// Begin returns the address of the issuer's page, and the cookie of a login that goes on to next.
func (i *Issuer) Begin(ctx context.Context, next string) (address, cookie string, err error) {
	a := identity.NewAttempt("")
	address, err = i.site.Begin(ctx, a)
	body := strings.Join([]string{
		version, strconv.FormatInt(i.now().Unix(), 36), a.State, a.Key, a.Verifier, base64.RawURLEncoding.EncodeToString([]byte(next)),
	}, ".")
	return address, body + "." + i.mac("login", []byte(body)), err
}

// End returns the issuer's name of the person who has logged in, and the address at which
// they go on. Error: ErrOther, ErrOften; any other one is for the log and for the person.
func (i *Issuer) End(ctx context.Context, cookie string, query url.Values) (person, next string, err error) {
	a, next, err := i.open(cookie)
	if err != nil {
		return "", "", err
	}
	if !hmac.Equal([]byte(query.Get("state")), []byte(a.State)) {
		return "", "", ErrOther
	}
	person, err = i.site.End(ctx, a, query)
	return person, next, err
}

// open returns the login of a cookie.
func (i *Issuer) open(cookie string) (a identity.Attempt, next string, err error) {
	at := strings.LastIndexByte(cookie, '.')
	if at < 0 || len(cookie) > maxCookie || !hmac.Equal([]byte(cookie[at+1:]), []byte(i.mac("login", []byte(cookie[:at])))) {
		return a, "", ErrOther
	}
	part := strings.Split(cookie[:at], ".")
	if len(part) != 6 || part[0] != version {
		return a, "", ErrOther
	}
	made, err := strconv.ParseInt(part[1], 36, 64)
	if err != nil {
		return a, "", ErrOther
	}
	if age := i.now().Sub(time.Unix(made, 0)); age < -time.Minute || age >= Lasts {
		return a, "", ErrOther
	}
	to, err := base64.RawURLEncoding.DecodeString(part[5])
	if err != nil {
		return a, "", ErrOther
	}
	return identity.Attempt{State: part[2], Key: part[3], Verifier: part[4]}, string(to), nil
}

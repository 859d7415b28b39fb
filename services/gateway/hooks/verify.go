package hooks

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errForged says that a request is not from who knows the secret. Its sender is told no more.
var errForged = errors.New("the signature does not fit")

// content is the content of a request whose signature fits.
type content struct {
	// id is the sender's own name of the delivery, event its word for what happened.
	id, event string
	// wanted says that such events lead to a look.
	wanted bool
	// reply answers a sender who asks whether the door is the right one; nil if it does not.
	reply []byte
}

// tolerance is how far a signed time may be from now.
const tolerance = 5 * time.Minute

// verify returns the content of a request, or errForged, or an error for a request whose
// form is wrong. It compares in a time that does not depend on how much of a signature fits.
func (k Kind) verify(h http.Header, body []byte, secrets [][]byte, now time.Time) (content, error) {
	switch k {
	case GitHub, Gitea:
		return gitHub(k, h, body, secrets)
	case GitLab:
		return gitLab(h, body, secrets, now)
	case Slack:
		return slack(h, body, secrets, now)
	case Standard:
		return standard(h, body, secrets, now)
	case CloudEvents:
		return cloudEvent(h, body, secrets)
	}
	return content{}, fmt.Errorf("there is no kind %q", k)
}

// gitHub reads a delivery of GitHub, Gitea or Forgejo.
func gitHub(k Kind, h http.Header, body []byte, secrets [][]byte) (content, error) {
	signature, ok := strings.CutPrefix(one(h, "X-Hub-Signature-256"), "sha256=")
	if !ok && k == Gitea {
		signature = one(h, "X-Gitea-Signature")
	}
	got, err := hex.DecodeString(signature)
	if err != nil || !anySigned(secrets, got, body) {
		return content{}, errForged
	}
	event := one(h, "X-GitHub-Event")
	id := one(h, "X-GitHub-Delivery")
	if k == Gitea {
		id = orElse(one(h, "X-Gitea-Delivery"), id)
		event = orElse(one(h, "X-Gitea-Event-Type"), orElse(one(h, "X-Gitea-Event"), event))
	}
	// GitHub's own choice is a form, in which nothing is found later on. Its
	// page of deliveries shows this answer.
	if media, _, _ := mime.ParseMediaType(one(h, "Content-Type")); k == GitHub && media == "application/x-www-form-urlencoded" {
		return content{}, errors.New("the content type has to be application/json: choose it in the settings of the webhook")
	}
	kind, _, _ := strings.Cut(event, "_")
	wanted := kind == "issue" || kind == "issues" || kind == "pull" || event == "status" || event == "check_run" || event == "check_suite"
	return content{id: orElse(id, digest(body)), event: event, wanted: wanted}, nil
}

// signingKey begins a key of the Standard Webhooks. GitLab calls it a signing
// token, and sends it to no one.
var signingKey = []byte("whsec_")

// gitLab reads a delivery of GitLab. It sends a secret token itself, and signs
// with a signing token: each secret is one of both by its form, so that a key
// is never taken for a token that is sent.
func gitLab(h http.Header, body []byte, secrets [][]byte, now time.Time) (content, error) {
	var keys, tokens [][]byte
	for _, s := range secrets {
		if bytes.HasPrefix(s, signingKey) {
			keys = append(keys, s)
		} else {
			tokens = append(tokens, s)
		}
	}
	signed, err := standard(h, body, keys, now)
	if err != nil && !anyEqual(tokens, []byte(one(h, "X-Gitlab-Token"))) {
		return content{}, errForged
	}
	event := one(h, "X-Gitlab-Event")
	id := orElse(signed.id, orElse(one(h, "Idempotency-Key"), orElse(one(h, "X-Gitlab-Event-UUID"), digest(body))))
	return content{id: id, event: event, wanted: slices.Contains(gitLabEvents, event)}, nil
}

// gitLabEvents are those that lead to a look. Those that are confidential are taken as
// well, since 4xx would count against the hook; the back end makes nothing of them.
var gitLabEvents = []string{
	"Issue Hook", "Confidential Issue Hook", "Work Item Hook", "Confidential Work Item Hook", "Note Hook", "Confidential Note Hook",
	"Merge Request Hook", "Pipeline Hook", "Job Hook", "Push Hook",
}

// slack reads an event, a command or a pressed button of Slack.
func slack(h http.Header, body []byte, secrets [][]byte, now time.Time) (content, error) {
	at := one(h, "X-Slack-Request-Timestamp")
	signature, ok := strings.CutPrefix(one(h, "X-Slack-Signature"), "v0=")
	got, err := hex.DecodeString(signature)
	if !ok || err != nil || !isNow(at, now) || !anySigned(secrets, got, []byte("v0:"+at+":"), body) {
		return content{}, errForged
	}
	kind, _, _ := mime.ParseMediaType(one(h, "Content-Type"))
	if kind == "application/x-www-form-urlencoded" { // a command or a button
		return content{id: digest([]byte(at), body), event: "interaction", wanted: true}, nil
	}
	var e struct {
		Type      string `json:"type"`
		EventID   string `json:"event_id"`
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return content{}, fmt.Errorf("the body is no JSON: %w", err)
	}
	if e.Type == "url_verification" {
		return content{reply: []byte(e.Challenge)}, nil
	}
	return content{id: orElse(e.EventID, digest(body)), event: e.Type, wanted: e.Type == "event_callback"}, nil
}

// standard reads a delivery that is signed as Standard Webhooks are.
func standard(h http.Header, body []byte, secrets [][]byte, now time.Time) (content, error) {
	id, at := one(h, "Webhook-Id"), one(h, "Webhook-Timestamp")
	if id == "" || !isNow(at, now) {
		return content{}, errForged
	}
	keys := make([][]byte, 0, len(secrets))
	for _, s := range secrets { // the library's form is whsec_ and base64; others are taken as they are
		key := s
		if encoded, ok := bytes.CutPrefix(s, signingKey); ok {
			if raw, err := base64.StdEncoding.DecodeString(string(encoded)); err == nil && len(raw) >= leastSecret {
				key = raw
			}
		}
		keys = append(keys, key)
	}
	const most = 10
	fits := false
	for i, signature := range strings.Fields(one(h, "Webhook-Signature")) {
		encoded, ok := strings.CutPrefix(signature, "v1,")
		got, err := base64.StdEncoding.DecodeString(encoded)
		if i < most && ok && err == nil && anySigned(keys, got, []byte(id+"."+at+"."), body) {
			fits = true
		}
	}
	if !fits {
		return content{}, errForged
	}
	return content{id: id, event: "webhook", wanted: true}, nil
}

// cloudEvent reads a CloudEvent in binary or structured form.
func cloudEvent(h http.Header, body []byte, secrets [][]byte) (content, error) {
	token, ok := strings.CutPrefix(one(h, "Authorization"), "Bearer ")
	if !ok || !anyEqual(secrets, []byte(token)) {
		return content{}, errForged
	}
	var e struct {
		SpecVersion string `json:"specversion"`
		ID          string `json:"id"`
		Source      string `json:"source"`
		Type        string `json:"type"`
	}
	kind, _, _ := mime.ParseMediaType(one(h, "Content-Type"))
	switch {
	case kind == "application/cloudevents+json":
		if err := json.Unmarshal(body, &e); err != nil {
			return content{}, fmt.Errorf("the body is no CloudEvent: %w", err)
		}
	case strings.HasPrefix(kind, "application/cloudevents"):
		return content{}, fmt.Errorf("%s is not taken; send one event, in the form of application/cloudevents+json", kind)
	default:
		for name, to := range map[string]*string{"Specversion": &e.SpecVersion, "Id": &e.ID, "Source": &e.Source, "Type": &e.Type} {
			text, err := url.PathUnescape(one(h, "Ce-"+name))
			if err != nil {
				return content{}, fmt.Errorf("ce-%s is not percent-encoded: %w", strings.ToLower(name), err)
			}
			*to = text
		}
	}
	if e.SpecVersion != "1.0" || e.ID == "" || e.Source == "" || e.Type == "" {
		return content{}, errors.New("a CloudEvent of version 1.0 has specversion, id, source and type")
	}
	return content{id: eventName(e.ID, e.Source), event: e.Type, wanted: true}, nil
}

// maxEventName bounds the name of a CloudEvent that is made of its words, in bytes.
const maxEventName = 200

// eventName returns the name of a CloudEvent: its id and its source, which has
// no space, or a digest where these cannot stand in a header.
func eventName(id, source string) string {
	name := id + " " + source
	hidden := func(r rune) bool { return r < ' ' || r > '~' }
	if len(name) > maxEventName || strings.Contains(source, " ") || strings.ContainsFunc(name, hidden) || strings.TrimSpace(name) != name {
		return digest([]byte(strconv.Itoa(len(source))), []byte(source), []byte(id))
	}
	return name
}

// EventNamed returns the id and the source of the CloudEvent that a delivery
// has as its ID; an empty source if it is a digest of both.
func EventNamed(name string) (id, source string) {
	if i := strings.LastIndexByte(name, ' '); i >= 0 {
		return name[:i], name[i+1:]
	}
	return name, ""
}

// one returns the only value of a header; empty if there is none, or several,
// of which readers might choose different ones.
func one(h http.Header, name string) string {
	if v := h.Values(name); len(v) == 1 {
		return v[0]
	}
	return ""
}

// orElse returns a text, or another one where it is empty.
func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// isNow reports whether a signed time, in seconds, is close to now.
func isNow(at string, now time.Time) bool {
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != at {
		return false
	}
	d := now.Sub(time.Unix(seconds, 0))
	return d <= tolerance && d >= -tolerance
}

// anySigned reports whether one of the secrets made a signature of these parts.
// It tries all of them.
func anySigned(secrets [][]byte, signature []byte, parts ...[]byte) bool {
	fits := 0
	for _, s := range secrets {
		mac := hmac.New(sha256.New, s)
		for _, p := range parts {
			mac.Write(p)
		}
		fits |= subtle.ConstantTimeCompare(mac.Sum(nil), signature)
	}
	return fits == 1
}

// anyEqual reports whether a text is one of the secrets. Their lengths are not told either.
func anyEqual(secrets [][]byte, text []byte) bool {
	got := sha256.Sum256(text)
	fits := 0
	for _, s := range secrets {
		want := sha256.Sum256(s)
		fits |= subtle.ConstantTimeCompare(want[:], got[:])
	}
	return fits == 1
}

// digest names a delivery whose sender gives it no name of its own.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

package hooks_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"
)

// signingToken is a key of the form that GitLab wants, of 32 bytes.
var signingToken = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))

// signedByLab returns the headers of a delivery that GitLab signs, with a signing token.
func signedByLab(key, body string, at time.Time) http.Header {
	const id = "abc"
	raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
	stamp := fmt.Sprint(at.Unix())
	return http.Header{
		"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Idempotency-Key": {"another"}, "X-Gitlab-Event": {"Note Hook"},
		"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(sign(string(raw), id+"."+stamp+"."+body))},
	}
}

// TestGitLab: a delivery of GitLab counts by its secret token, or by what is
// signed with a signing token; neither stands for the other, and with a signing
// token alone nobody gets in who has seen a request.
func TestGitLab(t *testing.T) {
	const body = `{"object_kind": "note"}`
	token := http.Header{"X-Gitlab-Token": {newSecret}, "X-Gitlab-Event": {"Note Hook"}, "Idempotency-Key": {"abc"}}
	good := signedByLab(signingToken, body, now)
	with := func(h http.Header, name string, values ...string) http.Header {
		h = maps.Clone(h)
		h[http.CanonicalHeaderKey(name)] = values
		return h
	}
	for what, c := range map[string]struct {
		secrets []string
		h       http.Header
		want    int
	}{
		"a token":                           {[]string{newSecret}, token, http.StatusAccepted},
		"a former token":                    {[]string{oldSecret, newSecret}, token, http.StatusAccepted},
		"another token":                     {[]string{oldSecret}, token, http.StatusUnauthorized},
		"no token":                          {[]string{newSecret}, with(token, "X-Gitlab-Token"), http.StatusUnauthorized},
		"an empty token":                    {[]string{newSecret}, with(token, "X-Gitlab-Token", ""), http.StatusUnauthorized},
		"two tokens":                        {[]string{newSecret}, with(token, "X-Gitlab-Token", newSecret, newSecret), http.StatusUnauthorized},
		"a signature":                       {[]string{signingToken}, good, http.StatusAccepted},
		"a signature while it is changed":   {[]string{newSecret, signingToken}, good, http.StatusAccepted},
		"a token while it is changed":       {[]string{newSecret, signingToken}, token, http.StatusAccepted},
		"a token in place of a signature":   {[]string{signingToken}, token, http.StatusUnauthorized},
		"the key as a token":                {[]string{signingToken}, with(token, "X-Gitlab-Token", signingToken), http.StatusUnauthorized},
		"an old signature":                  {[]string{signingToken}, signedByLab(signingToken, body, now.Add(-time.Hour)), http.StatusUnauthorized},
		"the signature of another body":     {[]string{signingToken}, signedByLab(signingToken, "{}", now), http.StatusUnauthorized},
		"the signature of another delivery": {[]string{signingToken}, with(good, "Webhook-Id", "abd"), http.StatusUnauthorized},
		"a signature by the token":          {[]string{newSecret}, signedByLab(newSecret, body, now), http.StatusUnauthorized},
		"an event that leads to nothing":    {[]string{newSecret}, with(token, "X-Gitlab-Event", "Wiki Page Hook"), http.StatusNoContent},
		"a push":                            {[]string{newSecret}, with(token, "X-Gitlab-Event", "Push Hook"), http.StatusAccepted},
		"a job":                             {[]string{newSecret}, with(token, "X-Gitlab-Event", "Job Hook"), http.StatusAccepted},
	} {
		var s stored
		if got := post(door(t, &s, c.secrets...), "/hooks/gitlab", body, c.h); got != c.want {
			t.Errorf("%s: answered with %d, want %d", what, got, c.want)
		}
		if len(s.list) > 0 && (s.list[0].ID != "abc" || c.want != http.StatusAccepted) {
			t.Errorf("%s: stored as %q", what, s.list[0].ID)
		}
	}
}

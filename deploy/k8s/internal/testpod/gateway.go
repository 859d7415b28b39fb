package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// request asks a gateway for changes by HTTP, as a system with a token that knows nothing of NATS.
// Each is asked for until a runner has taken it, and once more under the same key, which makes no
// second one of it. TOKEN is the token, and the answers to both have to name the same intent. It
// prints "taken N" when all are, which the test waits for.
func request(gateway, project, prefix, count string, out io.Writer) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	for i := range n {
		id := fmt.Sprintf("%s-%03d", prefix, i)
		data, err := json.Marshal(map[string]any{
			"title": "Write " + id, "body": "Please.", "type": "feature", "risk": "low", "recipe": "write", "with": map[string]string{"NAME": id},
		})
		if err != nil {
			return err
		}
		header := http.Header{
			"Authorization": {"Bearer " + os.Getenv("TOKEN")}, "Content-Type": {"application/json"}, "Idempotency-Key": {id},
		}
		first, err := insist(gateway+"/api/v1/projects/"+project+"/intents", header, data, http.StatusCreated, http.StatusOK)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		again, err := insist(gateway+"/api/v1/projects/"+project+"/intents", header, data, http.StatusOK)
		if err != nil {
			return fmt.Errorf("%s, once more: %w", id, err)
		}
		if first != again {
			return fmt.Errorf("%s is intent %s at first, and then %s", id, first, again)
		}
	}
	fmt.Fprintf(out, "taken %d\n", n)
	return nil
}

// insist posts until the answer is one of those wanted, and returns the intent that it names. A
// gateway that is away, cannot reach NATS, or has no answer of a runner yet is asked again. An
// answer that no repetition can better, such as a refused field, ends it with an error at once.
// After a minute the last answer is the error.
func insist(url string, header http.Header, body []byte, wanted ...int) (intent string, err error) {
	for range 60 {
		status, answer, failed := post(url, header, body)
		for _, w := range wanted {
			if failed == nil && status == w {
				var said struct{ Intent string }
				err := json.Unmarshal(answer, &said)
				return said.Intent, err
			}
		}
		err = failed
		if failed == nil {
			err = fmt.Errorf("the gateway answers %d: %s", status, answer)
		}
		if failed == nil && status != http.StatusAccepted && status != http.StatusOK && status != http.StatusTooManyRequests && status < 500 {
			return "", err
		}
		<-time.After(time.Second)
	}
	return "", err
}

// deliver tells a hook of one event of a forge three times: signed with SECRET, the same once
// more, and signed with another secret. It prints the three answers, as in "202 202 401": a hook
// takes an event, says the same to a repetition, and takes nothing from strangers.
func deliver(url string, out io.Writer) error {
	body := []byte(`{"action": "labeled"}`)
	answers := []string{}
	for _, secret := range []string{os.Getenv("SECRET"), os.Getenv("SECRET"), "who does not know it"} {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		header := http.Header{
			"Content-Type": {"application/json"}, "X-Gitea-Event": {"issues"}, "X-Gitea-Delivery": {"delivery-1"},
			"X-Gitea-Signature": {hex.EncodeToString(mac.Sum(nil))},
		}
		status, _, err := post(url, header, body)
		if err != nil {
			return err
		}
		answers = append(answers, strconv.Itoa(status))
	}
	fmt.Fprintln(out, strings.Join(answers, " "))
	return nil
}

// post returns the status and the content of an answer.
func post(url string, header http.Header, body []byte) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body)) //nolint:gosec // the test says what is asked
	if err != nil {
		return 0, nil, err
	}
	r.Header = header
	response, err := http.DefaultClient.Do(r) //nolint:gosec // likewise
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

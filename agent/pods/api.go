package pods

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// accountDir is where Kubernetes puts a service account's token.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount/"

// requestTimeout bounds one request to the API server.
const requestTimeout = 15 * time.Second

// maxAnswer bounds an answer of the API server.
const maxAnswer = 16 << 20

// API is a Kubernetes API server.
type API struct {
	// URL is its address, as https://host:port.
	URL string
	// Token returns the bearer token. It is asked before each request, because tokens are
	// replaced.
	Token func() (string, error)
	// TLS says how the server is known.
	TLS *tls.Config
}

// InCluster returns the API server of the cluster in which this process is a pod with a
// mounted service account token.
func InCluster() (*API, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	authorities, err := os.ReadFile(accountDir + "ca.crt")
	if err != nil {
		return nil, fmt.Errorf("the pod has no service account token; set automountServiceAccountToken: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return nil, errors.New(accountDir + "ca.crt holds no certificate")
	}
	return &API{
		URL: "https://" + net.JoinHostPort(host, port),
		TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		Token: func() (string, error) {
			token, err := os.ReadFile(accountDir + "token")
			return strings.TrimSpace(string(token)), err
		},
	}, nil
}

// client returns the HTTP client. Its protocol is HTTP/1.1, which upgrades to a WebSocket
// need.
func (a *API) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: a.TLS.Clone(), TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		TLSHandshakeTimeout: requestTimeout, ResponseHeaderTimeout: requestTimeout, IdleConnTimeout: time.Minute,
	}}
}

// header returns the header of a request.
func (a *API) header() (http.Header, error) {
	token, err := a.Token()
	if err != nil {
		return nil, fmt.Errorf("the service account's token cannot be read: %w", err)
	}
	header := http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return header, nil
}

// statusError is an answer that says no.
type statusError struct {
	// Code is the HTTP status.
	Code int
	// Message is that of the answer's Status object, or the name of the HTTP status.
	Message string
}

// Error returns status and message as one line.
func (e *statusError) Error() string {
	return fmt.Sprintf("the API server answers %d: %s", e.Code, e.Message)
}

// final reports whether the same request would get the same answer until the cluster is
// changed.
func (e *statusError) final() bool {
	return e.Code/100 == 4 && e.Code != http.StatusTooManyRequests && e.Code != http.StatusConflict && e.Code != http.StatusNotFound &&
		!e.overQuota()
}

// overQuota reports whether the namespace is full, so that the same request may succeed later.
func (e *statusError) overQuota() bool { return strings.Contains(e.Message, "exceeded quota") }

// isGone reports whether an error says that there is no such object.
func isGone(err error) bool {
	var e *statusError
	return errors.As(err, &e) && e.Code == http.StatusNotFound
}

// do makes one request. body and answer are objects as JSON, or nil.
func (a *API) do(ctx context.Context, client *http.Client, method, path string, query url.Values, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.URL+path+"?"+query.Encode(), content)
	if err != nil {
		return err
	}
	if req.Header, err = a.header(); err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		var status struct{ Message string }
		if json.Unmarshal(text, &status) != nil || status.Message == "" {
			status.Message = http.StatusText(res.StatusCode)
		}
		return &statusError{res.StatusCode, status.Message}
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

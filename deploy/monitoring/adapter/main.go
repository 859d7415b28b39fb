// Command adapter answers autoscalers of a test's cluster as prometheus-adapter does
// with the rule of deploy/k8s/components/hpa: it reads the metrics of one address
// with Prometheus' own scraper into Prometheus' own storage, and has Prometheus'
// engine evaluate the rule. It is no prometheus-adapter, which no module proxy has.
//
//	adapter RULE DATA NAMESPACE HOST:PORT
//
// RULE is the file with the rule, DATA an empty folder, NAMESPACE the label
// that the Prometheus operator would give the series. It serves HTTPS on port
// 6443 with a certificate signed by itself, and asks for no credentials.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
)

// group is the part of the API of Kubernetes that is answered.
const group = "/apis/external.metrics.k8s.io/v1beta1"

// job is the name of what is scraped.
const job = "forge"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "adapter:", err)
		os.Exit(1)
	}
}

// adapter evaluates one rule.
type adapter struct {
	// name is the metric that autoscalers ask for, series what has to be there,
	// and query what it is.
	name, series, query string
	db                  *tsdb.DB
	engine              *promql.Engine
}

// run reads the rule, and scrapes and serves until one of both fails. The arguments are those
// of the package comment; the process ends with the test's pod, so nothing is put away.
func run(args []string) error {
	if len(args) != 4 {
		return errors.New("usage: adapter RULE DATA NAMESPACE HOST:PORT")
	}
	a := &adapter{engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})}
	if err := a.read(args[0]); err != nil {
		return err
	}
	var err error
	if a.db, err = tsdb.Open(args[1], nil, nil, tsdb.DefaultOptions(), nil); err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- a.scrape(context.Background(), args[2], args[3]) }()
	go func() { failed <- a.serve() }()
	return <-failed
}

// read reads the one rule of a file: the part of prometheus-adapter's settings that
// says what has to be there, what is asked, and under which name it is answered. A
// file with none or several is an error, since only one of them would be tried.
func (a *adapter) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for pattern, field := range map[string]*string{
		`(?m)^ *(?:- )?seriesQuery: '(.+)'$`: &a.series, `(?m)^ *metricsQuery: (.+)$`: &a.query, `\bas: (\w+)`: &a.name,
	} {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
		if len(found) != 1 {
			return fmt.Errorf("%s: %d times %s", file, len(found), pattern)
		}
		*field = found[0][1]
	}
	return nil
}

// scrape reads an address every two seconds, until the context ends: autoscalers
// ask every fifteen, and a test is not to wait for more. The series get the
// label namespace, which in a cluster the operator of Prometheus gives them.
func (a *adapter) scrape(ctx context.Context, namespace, address string) error {
	cfg, err := config.Load("global: {scrape_interval: 2s, scrape_timeout: 2s}\nscrape_configs: [{job_name: "+job+"}]\n", slog.Default())
	if err != nil {
		return err
	}
	m, err := scrape.NewManager(nil, slog.Default(), nil, a.db, nil, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	if err := m.ApplyConfig(cfg); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, m.Stop)()
	targets := make(chan map[string][]*targetgroup.Group, 1)
	targets <- map[string][]*targetgroup.Group{job: {{
		Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(address)}}, Labels: model.LabelSet{"namespace": model.LabelValue(namespace)}, Source: job,
	}}}
	return m.Run(targets)
}

// serve answers autoscalers, who ask the API server for a list of metrics
// first, and then for one by its name and labels. The API server passes both on
// as they are, and believes any certificate where the APIService says so.
func (a *adapter) serve() error {
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+group, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": strings.TrimPrefix(group, "/apis/"), "resources": []any{
			map[string]any{"name": a.name, "singularName": "", "namespaced": true, "kind": "ExternalMetricValueList", "verbs": []string{"get"}},
		}})
	})
	mux.HandleFunc("GET "+group+"/namespaces/{namespace}/{metric}", func(w http.ResponseWriter, r *http.Request) {
		items, err := a.values(r.Context(), r.PathValue("namespace"), r.PathValue("metric"), r.URL.Query().Get("labelSelector"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		answer(w, map[string]any{
			"kind": "ExternalMetricValueList", "apiVersion": strings.TrimPrefix(group, "/apis/"), "metadata": map[string]any{}, "items": items,
		})
	})
	server := &http.Server{
		Addr: ":6443", Handler: mux, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	return server.ListenAndServeTLS("", "")
}

// values evaluates the rule now for a metric with labels, as in
// forge_step=implement. It fails if no series is there: an autoscaler leaves
// the replicas as they are then, where a zero would take them away.
func (a *adapter) values(ctx context.Context, namespace, metric, selector string) ([]any, error) {
	there, err := a.ask(ctx, a.series)
	if err != nil || len(there) == 0 || metric != a.name {
		return nil, fmt.Errorf("there is no %s: %w", metric, err)
	}
	matchers := []string{fmt.Sprintf("namespace=%q", namespace)}
	for one := range strings.SplitSeq(selector, ",") {
		label, value, found := strings.Cut(one, "=")
		if !found {
			return nil, fmt.Errorf("labelSelector: %q is no label and its value", one)
		}
		matchers = append(matchers, fmt.Sprintf("%s=%q", label, strings.TrimPrefix(value, "=")))
	}
	vector, err := a.ask(ctx, strings.ReplaceAll(a.query, "<<.LabelMatchers>>", strings.Join(matchers, ",")))
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, s := range vector {
		items = append(items, map[string]any{
			"metricName": a.name, "metricLabels": s.Metric.Map(), "value": strconv.FormatFloat(s.F, 'f', -1, 64),
			"timestamp": time.UnixMilli(s.T).UTC().Format(time.RFC3339),
		})
	}
	return items, nil
}

// ask evaluates a query now.
func (a *adapter) ask(ctx context.Context, query string) (promql.Vector, error) {
	q, err := a.engine.NewInstantQuery(ctx, a.db, nil, query, time.Now())
	if err != nil {
		return nil, err
	}
	defer q.Close()
	vector, err := q.Exec(ctx).Vector()
	return append(promql.Vector(nil), vector...), err
}

// answer writes an object as JSON. An error is the connection's, and only
// logged: whoever asked is gone.
func answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(object); err != nil {
		fmt.Fprintln(os.Stderr, "adapter: answer:", err)
	}
}

// selfSigned returns a certificate of its own authority, good for a day.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"adapter"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, err
}

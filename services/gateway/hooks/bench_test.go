package hooks_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// BenchmarkDelivery measures the slowest hundredth of deliveries over HTTP,
// from the sending to the answer, in times of the slowest hundredth of storing
// alone. The machine's own slowness is in both.
func BenchmarkDelivery(b *testing.B) {
	bus := bustest.Start(b)
	srv := serve(b, hooks.Config{Store: bus.Deliveries.Store})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ctx := wait.Context(b)
	n := 0
	var whole, alone []time.Duration
	for b.Loop() {
		n++
		body, h := delivery(n, newSecret)
		began := time.Now()
		if got := send(b, client, srv.URL, body, h); got != http.StatusAccepted {
			b.Fatal(got)
		}
		whole = append(whole, time.Since(began))
		began = time.Now()
		if _, err := bus.Deliveries.Store(ctx, deliveries.Delivery{Hook: "y", ID: fmt.Sprint(n), Body: []byte(body)}); err != nil {
			b.Fatal(err)
		}
		alone = append(alone, time.Since(began))
	}
	p99 := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)*99/100])
	}
	b.ReportMetric(p99(whole)/p99(alone), "p99/store")
	b.ReportMetric(p99(whole)/1e6, "p99-ms")
}

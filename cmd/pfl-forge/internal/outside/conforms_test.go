package outside

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/forgedir/schematest"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
)

// sha returns what the file of tokens has of one.
func sha(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// asRequest is errors.As for an error of a request.
func asRequest(err error, into **requests.RequestError) bool { return errors.As(err, into) }

// schemaPath begins the paths of schemas in the description.
const schemaPath = "/components/schemas/"

// described is docs/openapi.json, with the schemas of answers.
var described = sync.OnceValues(func() (doc, error) {
	data, err := os.ReadFile(description)
	if err != nil {
		return nil, err
	}
	var d doc
	return d, json.Unmarshal(data, &d)
})

// checks has a function for each schema of the description, by its path, that checks content by it.
var checks sync.Map

// check checks content by a schema of the description, which is compiled once for all tests.
func check(t testing.TB, path string, content []byte) error {
	t.Helper()
	if known, ok := checks.Load(path); ok {
		return known.(func([]byte) error)(content)
	}
	data, err := os.ReadFile(description)
	if err != nil {
		t.Fatal(err)
	}
	schema := schematest.CompileIn(t, data, path)[path]
	by := func(content []byte) error { return schematest.Validate(schema, content) }
	checks.Store(path, by)
	return by(content)
}

// conforms checks an answer against the description: its status is listed for the route, and
// its content fits the schema there. What is answered where there is no route is a problem.
func conforms(t testing.TB, r *http.Request, a *answer) {
	t.Helper()
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	schema := "problem"
	if route := routeOf(r); route != nil {
		op := d["paths"].(doc)[route.Path].(doc)[strings.ToLower(r.Method)].(doc)
		listed, _ := op["responses"].(doc)[strconv.Itoa(a.status)].(doc)
		if listed == nil {
			t.Errorf("%s %s is answered with %d, which the description does not have", r.Method, route.Path, a.status)
			return
		}
		content, _ := listed["content"].(doc)[a.header.Get("Content-Type")].(doc)
		if content == nil {
			t.Errorf("%s %s is answered with %s", r.Method, route.Path, a.header.Get("Content-Type"))
			return
		}
		schema = strings.TrimPrefix(content["schema"].(doc)["$ref"].(string), "#"+schemaPath)
	}
	if err := check(t, schemaPath+schema, []byte(a.text)); err != nil {
		t.Errorf("%s %s: %s is no %s: %v", r.Method, r.URL.Path, a.text, schema, err)
	}
}

// routing has the routes of the API.
var routing = sync.OnceValue(func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, one := range api.Routes() {
		mux.Handle(one.Method+" "+one.Path, http.NotFoundHandler())
	}
	return mux
})

// routeOf returns the route of a request; nil if there is none.
func routeOf(r *http.Request) *api.Route {
	if !api.Clean(r) {
		return nil
	}
	_, pattern := routing().Handler(r)
	routes := api.Routes()
	for i := range routes {
		if routes[i].Method+" "+routes[i].Path == pattern {
			return &routes[i]
		}
	}
	return nil
}

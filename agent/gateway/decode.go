package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth bounds how deep a request is nested.
const maxDepth = 500

// decode returns the value of a JSON text: of objects a map, of lists a slice. It refuses
// what two readers could understand in two ways: a name that an object has twice, bytes
// that are no text, and anything after the value.
func decode(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	value, err := decodeValue(d, 0)
	if err != nil {
		return nil, fmt.Errorf("is no JSON that can be read in one way: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has something after its end")
	}
	return value, nil
}

// decodeValue returns the next value.
func decodeValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	switch {
	case !ok:
		return token, nil
	case depth == maxDepth:
		return nil, errors.New("it is nested too deep")
	case delim == '[':
		out := []any{}
		for d.More() {
			value, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, value)
		}
		_, err = d.Token()
		return out, err
	}
	out := map[string]any{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := name.(string)
		if _, twice := out[key]; !ok || twice {
			return nil, fmt.Errorf("%.40q is there twice", fmt.Sprint(name))
		}
		if out[key], err = decodeValue(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err = d.Token()
	return out, err
}

package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"dsh/internal/compose"
)

// parseValue is the value of a JSON text, its keys in their order.
func parseValue(text []byte) (compose.Value, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if !json.Valid(text) {
		return nil, errors.New("it is no JSON")
	}
	return readValue(d)
}

// readValue reads one value of a text that is valid.
func readValue(d *json.Decoder) (compose.Value, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil // nil, bool, float64 or string
	}
	var v compose.Value
	switch delim {
	case '[':
		list := &compose.List{Items: []compose.Value{}}
		for d.More() {
			item, err := readValue(d)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, item)
		}
		v = list
	case '{':
		m := &compose.Map{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			item, err := readValue(d)
			if err != nil {
				return nil, err
			}
			m.Set(key.(string), item)
		}
		v = m
	default:
		return nil, fmt.Errorf("%s stands alone", delim)
	}
	_, err = d.Token()
	return v, err
}

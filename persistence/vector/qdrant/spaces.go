package qdrant

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	client "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/zephbot/zephbot/agent/knn"
)

// Fields of the payload of a point that belongs to an owner, besides keyField and hashField. What the caller stores is
// in a field of its own, so that its names are free.
const (
	scopeField = "scope"
	moreField  = "payload"
)

const (
	spacePrefix = "zeph_" // of collections
	mostOwners  = 100_000 // that Owners lists
	spaceTries  = 3       // of a write whose collection had to be created
)

// spaces is knn.Spaces in Qdrant: a collection for each Kind, in which the scope is a payload field with an index.
type spaces struct{ *Store }

// Spaces returns the collections that keep the vectors of many owners apart.
func (s *Store) Spaces() knn.Spaces { return spaces{s} }

// collectionOf is the name of the collection of a Kind. The name of a model can have any characters.
func collectionOf(kind knn.Kind) string {
	return fmt.Sprintf(
		"%s%s.%d.%s", spacePrefix, kind.Name, kind.Size, base64.RawURLEncoding.EncodeToString([]byte(kind.Model)),
	)
}

// kindOf reverses collectionOf. ok is false for a collection of something else.
func kindOf(collection string) (kind knn.Kind, ok bool) {
	parts := strings.Split(strings.TrimPrefix(collection, spacePrefix), ".")
	if len(parts) != 3 {
		return knn.Kind{}, false
	}
	model, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return knn.Kind{}, false
	}
	if kind, err = knn.ParseKind(parts[0] + "|" + parts[1] + "|" + string(model)); err != nil {
		return knn.Kind{}, false
	}
	return kind, collectionOf(kind) == collection
}

// Space implements knn.Spaces.
func (s spaces) Space(kind knn.Kind) (knn.Space, error) {
	if err := kind.Check(); err != nil {
		return nil, err
	}
	return &space{index: index{Store: s.Store, name: collectionOf(kind)}, kind: kind}, nil
}

// Kinds implements knn.Spaces.
func (s spaces) Kinds(ctx context.Context, name string) (kinds []knn.Kind, err error) {
	var names []string
	err = s.callServer(ctx, "list collections", func(ctx context.Context) (err error) {
		names, err = s.client.ListCollections(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, collection := range names {
		if kind, ok := kindOf(collection); ok && kind.Name == name {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// Owners implements knn.Spaces.
func (s spaces) Owners(ctx context.Context, kind knn.Kind) (scopes []string, err error) {
	x := &space{index: index{Store: s.Store, name: collectionOf(kind)}, kind: kind}
	err = x.runFiltered(ctx, "list owners", func(ctx context.Context) error {
		hits, err := s.client.Facet(ctx, &client.FacetCounts{
			CollectionName: x.name, Key: scopeField, Limit: new(uint64(mostOwners)), Exact: new(true),
		})
		scopes = nil
		for _, hit := range hits {
			scopes = append(scopes, hit.GetValue().GetStringValue())
		}
		return err
	})
	if isMissing(err) {
		return nil, nil
	}
	slices.Sort(scopes)
	return scopes, err
}

// Drop implements knn.Spaces.
func (s spaces) Drop(ctx context.Context, kind knn.Kind) error {
	err := s.callServer(ctx, "drop a collection", func(ctx context.Context) error {
		_, err := s.client.GetCollectionsClient().Delete(ctx, &client.DeleteCollection{
			CollectionName: collectionOf(kind),
		})
		return err
	})
	if isMissing(err) {
		return nil
	}
	return err
}

// space is a knn.Space.
type space struct {
	index
	kind knn.Kind
}

// ownedID is the id of a point of an owner. A scope contains no zero.
func ownedID(scope, key string) string {
	namespace := uuid.UUID{
		0x1e, 0x0b, 0x7d, 0x5a, 0x8f, 0x36, 0x4c, 0x9c, 0x9a, 0x11, 0x52, 0xd3, 0x6e, 0x60, 0xf4, 0x27,
	}
	return uuid.NewSHA1(namespace, []byte(scope+"\x00"+key)).String()
}

// ownersFilter selects the points of owners.
func ownersFilter(scopes ...string) *client.Filter {
	return &client.Filter{Must: []*client.Condition{client.NewMatchKeywords(scopeField, scopes...)}}
}

// ownerOf returns scope and key of a point, or false for one that something else stored, or that is of nobody in
// scopes: what the server returns is checked, not believed.
func ownerOf(of *client.PointId, payload map[string]*client.Value, scopes []string) (scope, key string, ok bool) {
	scope, key = payload[scopeField].GetStringValue(), payload[keyField].GetStringValue()
	return scope, key, slices.Contains(scopes, scope) && of.GetUuid() == ownedID(scope, key)
}

// Hashes implements knn.Space.
func (x *space) Hashes(ctx context.Context, scope string) (map[string]string, error) {
	if err := knn.CheckScope(scope); err != nil {
		return nil, err
	}
	all := map[string]string{}
	var from *client.PointId
	for {
		var points []*client.RetrievedPoint
		var next *client.PointId
		err := x.runFiltered(ctx, "read hashes", func(ctx context.Context) (err error) {
			points, next, err = x.client.ScrollAndOffset(ctx, &client.ScrollPoints{
				CollectionName: x.name, Filter: ownersFilter(scope), Offset: from, Limit: new(uint32(pageSize)),
				WithPayload: client.NewWithPayloadInclude(scopeField, keyField, hashField),
				WithVectors: client.NewWithVectorsEnable(false),
			})
			return err
		})
		if isMissing(err) {
			return map[string]string{}, nil
		}
		if err != nil {
			return nil, err
		}
		for _, p := range points {
			if _, key, ok := ownerOf(p.GetId(), p.GetPayload(), []string{scope}); ok {
				all[key] = p.GetPayload()[hashField].GetStringValue()
			}
		}
		if next == nil {
			return all, nil
		}
		if proto.Equal(next, from) {
			return nil, fmt.Errorf("read hashes: qdrant at %s returned the same page again", x.where)
		}
		from = next
	}
}

// Upsert implements knn.Space.
func (x *space) Upsert(ctx context.Context, points []knn.Point) error {
	var all []*client.PointStruct
	var restated []knn.Point
	at := map[string]int{}
	for _, p := range points {
		if err := x.kind.CheckPoint(p); err != nil {
			return err
		}
		if len(p.Vector) == 0 {
			restated = append(restated, p)
			continue
		}
		made := &client.PointStruct{
			Id:      client.NewIDUUID(ownedID(p.Scope, p.Key)),
			Vectors: client.NewVectorsDense(knn.Unit(p.Vector)), Payload: payloadOf(p),
		}
		if i, ok := at[made.GetId().GetUuid()]; ok { // the last one wins
			all[i] = made
			continue
		}
		at[made.GetId().GetUuid()] = len(all)
		all = append(all, made)
	}
	for batch := range slices.Chunk(all, min(max(batchBytes/(4*x.kind.Size), 1), batchPoints)) {
		if err := x.writeBatch(ctx, batch); err != nil {
			return err
		}
	}
	for _, p := range restated {
		if err := x.replacePayload(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func payloadOf(p knn.Point) map[string]*client.Value {
	more := make(map[string]*client.Value, len(p.Payload))
	for name, text := range p.Payload {
		more[name] = client.NewValueString(text)
	}
	return map[string]*client.Value{
		scopeField: client.NewValueString(p.Scope), keyField: client.NewValueString(p.Key),
		hashField: client.NewValueString(p.Hash), moreField: client.NewValueStruct(&client.Struct{Fields: more}),
	}
}

// writeBatch stores a batch, and creates the collection if it does not exist.
func (x *space) writeBatch(ctx context.Context, batch []*client.PointStruct) error {
	for try := 1; ; try++ {
		err := x.upsertBatch(ctx, batch)
		if !isMissing(err) || try == spaceTries {
			return err
		}
		if err := x.createCollection(ctx); err != nil {
			return err
		}
	}
}

// createCollection creates the collection. Another process may do so at the same time.
func (x *space) createCollection(ctx context.Context) error {
	err := x.callServer(writeContext(ctx), "create the collection", func(ctx context.Context) error {
		return x.client.CreateCollection(ctx, &client.CreateCollection{
			CollectionName: x.name,
			VectorsConfig: client.NewVectorsConfig(&client.VectorParams{
				Size: uint64(x.kind.Size), Distance: client.Distance_Cosine, //nolint:gosec // positive
			}),
		})
	})
	if err != nil {
		if size, sizeErr := x.vectorSize(ctx); sizeErr != nil || size != x.kind.Size {
			return err
		}
	}
	return x.indexOwners(ctx)
}

// indexOwners lets the server find points by their owner. That there is an index already is no error.
func (x *space) indexOwners(ctx context.Context) error {
	return x.callServer(writeContext(ctx), "index the owners", func(ctx context.Context) error {
		_, err := x.client.CreateFieldIndex(ctx, &client.CreateFieldIndexCollection{
			CollectionName:   x.name,
			FieldName:        scopeField,
			FieldType:        client.FieldType_FieldTypeKeyword.Enum(),
			Wait:             new(true),
			FieldIndexParams: client.NewPayloadIndexParamsKeyword(&client.KeywordIndexParams{IsTenant: new(true)}),
		})
		return err
	})
}

// runFiltered is a call that finds points by their owner. A collection lacks the index if the process that created it
// ended before it could make one: then owners cannot be listed, and a server in strict mode (Qdrant's cloud) refuses
// filters. So what the server calls invalid is tried again with an index.
func (x *space) runFiltered(ctx context.Context, what string, run func(ctx context.Context) error) error {
	err := x.callServer(ctx, what, run)
	if status.Code(err) != codes.InvalidArgument {
		return err
	}
	if indexErr := x.indexOwners(ctx); indexErr != nil {
		return errors.Join(err, indexErr)
	}
	return x.callServer(ctx, what, run)
}

// replacePayload replaces the payload of a point, if there is one.
func (x *space) replacePayload(ctx context.Context, p knn.Point) error {
	err := x.callServer(writeContext(ctx), "store a payload", func(ctx context.Context) error {
		_, err := x.client.OverwritePayload(ctx, &client.SetPayloadPoints{
			CollectionName: x.name, Payload: payloadOf(p), Wait: new(true),
			PointsSelector: client.NewPointsSelectorIDs([]*client.PointId{client.NewIDUUID(ownedID(p.Scope, p.Key))}),
		})
		return err
	})
	if isMissing(err) {
		return nil
	}
	return err
}

// Delete implements knn.Space.
func (x *space) Delete(ctx context.Context, scope string, keys []string) error {
	if err := knn.CheckScope(scope); err != nil {
		return err
	}
	for batch := range slices.Chunk(keys, pageSize) {
		ids := make([]*client.PointId, len(batch))
		for i, key := range batch {
			ids[i] = client.NewIDUUID(ownedID(scope, key))
		}
		if err := x.removePoints(ctx, client.NewPointsSelectorIDs(ids)); err != nil {
			return err
		}
	}
	return nil
}

// Forget implements knn.Space.
func (x *space) Forget(ctx context.Context, scope string) error {
	if err := knn.CheckScope(scope); err != nil {
		return err
	}
	return x.removePoints(ctx, client.NewPointsSelectorFilter(ownersFilter(scope)))
}

func (x *space) removePoints(ctx context.Context, which *client.PointsSelector) error {
	err := x.runFiltered(writeContext(ctx), "remove points", func(ctx context.Context) error {
		_, err := x.client.Delete(ctx, &client.DeletePoints{CollectionName: x.name, Points: which, Wait: new(true)})
		return err
	})
	if isMissing(err) {
		return nil
	}
	return err
}

// Search implements knn.Space, exactly: an owner has few points, among which a graph over all owners would miss some.
func (x *space) Search(ctx context.Context, f knn.Filter, vector []float32, limit int) ([]knn.Hit, error) {
	if err := x.kind.CheckSearch(f, vector); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	var points []*client.ScoredPoint
	err := x.runFiltered(ctx, "search", func(ctx context.Context) (err error) {
		points, err = x.client.Query(ctx, &client.QueryPoints{
			CollectionName: x.name, Query: client.NewQueryDense(knn.Unit(vector)), Filter: ownersFilter(f.Scopes...),
			Limit: new(uint64(min(limit, knn.MostHits))), Params: &client.SearchParams{Exact: new(true)},
			WithPayload: client.NewWithPayloadEnable(true),
		})
		return err
	})
	if isMissing(err) || status.Code(err) == codes.OK && len(points) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	hits := make([]knn.Hit, 0, len(points))
	for _, p := range points {
		scope, key, ok := ownerOf(p.GetId(), p.GetPayload(), f.Scopes)
		if !ok {
			continue
		}
		hit := knn.Hit{Scope: scope, Key: key, Score: p.GetScore()}
		if more := p.GetPayload()[moreField].GetStructValue().GetFields(); len(more) > 0 {
			hit.Payload = make(map[string]string, len(more))
			for name, text := range more {
				hit.Payload[name] = text.GetStringValue()
			}
		}
		hits = append(hits, hit)
	}
	knn.SortHits(hits)
	return hits, nil
}

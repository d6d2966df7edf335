"""What the API's document says sandboxes do, as a model, and random operations against it."""

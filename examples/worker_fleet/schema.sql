-- What the fleet works off: payments, in their order within each account.
CREATE TABLE account (
    name    text   PRIMARY KEY,
    balance bigint NOT NULL DEFAULT 0,
    token   bigint NOT NULL DEFAULT 0  -- the fence: of the last owner that wrote here
);
CREATE TABLE payment (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account text   NOT NULL REFERENCES account,
    amount  bigint NOT NULL,
    done_by bigint                     -- the token under which it was applied; null: still to do
);
CREATE INDEX ON payment (account, id) WHERE done_by IS NULL;

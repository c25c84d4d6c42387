"""Uses a client that was generated from the standard's API description, unchanged, against a running service.

Usage: rnis_client.py API-DESCRIPTION BASE-URL CALLBACK-URL
"""

import json
import subprocess
import sys
import tempfile
from http import HTTPStatus
from pathlib import Path

import yaml


def generate(description: Path, folder: Path) -> None:
    """Generates the package `client`. The description's response codes are YAML integers; JSON has text keys."""
    document = yaml.safe_load(description.read_text())
    source = folder / "api.json"
    source.write_text(json.dumps(document, default=str))
    tool = Path(sys.executable).with_name("openapi-python-client")
    command = [tool, "generate", "--path", source, "--output-path", folder / "client", "--meta", "none"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def use(base: str, callback: str) -> None:
    """Calls every operation."""
    from client import Client, models
    from client.api.rni import (
        layer_2_meas_info_get,
        plmn_info_get,
        rab_info_get,
        subscription_link_list_subscriptions_get,
        subscriptions_delete,
        subscriptions_get,
        subscriptions_post,
        subscriptions_put,
    )
    from client.api.unsupported import s_1_bearer_info_get  # AdvantEDGE does not support it; we do.

    client = Client(base_url=base)
    with client:
        bearers = rab_info_get.sync(client=client, app_ins_id="app", cell_id=["0000007", "0000008"])
        assert isinstance(bearers, models.RabInfo), bearers
        assert bearers.cell_user_info[0].ue_info[0].erab_info[0].erab_id == 5
        plmn = plmn_info_get.sync(client=client, app_ins_id=["a", "b"])
        assert plmn[1].app_instance_id == "b", plmn
        s1 = s_1_bearer_info_get.sync(client=client, gtp_teid=["7"])
        bearer = s1.to_dict()["s1UeInfo"][0]["s1BearerInfoDetailed"][0]
        assert bearer["sGwInfo"]["tunnelId"] == "8", s1
        layer2 = layer_2_meas_info_get.sync(client=client, dl_total_prb_usage_cell=1, dl_nongbr_throughput_ue=1)
        assert layer2.cell_info[0].dl_total_prb_usage_cell == 25, layer2
        assert layer2.cell_ue_info[0].dl_nongbr_throughput_ue == 10_000, layer2

        wanted = {
            "subscriptionType": "MeasTaSubscription",
            "callbackReference": callback,
            "filterCriteriaAssoc": {"associateId": [{"type": 1, "value": "10.45.0.2"}]},
        }
        body = models.MeasTaSubscription.from_dict(wanted)
        created = subscriptions_post.sync_detailed(client=client, body=body)
        assert created.status_code == HTTPStatus.CREATED, created
        link = created.parsed.to_dict()["_links"]["self"]["href"]
        number = link.rsplit("/", 1)[1]
        read = subscriptions_get.sync(number, client=client)
        assert read.to_dict()["callbackReference"] == callback, read
        listed = subscription_link_list_subscriptions_get.sync(client=client, subscription_type="timing_advance_ue")
        assert listed.field_links.subscription[0].href == link, listed
        body = models.MeasTaSubscription.from_dict(wanted | {"_links": {"self": {"href": link}}})
        assert subscriptions_put.sync_detailed(number, client=client, body=body).status_code == HTTPStatus.OK
        assert subscriptions_delete.sync_detailed(number, client=client).status_code == HTTPStatus.NO_CONTENT
        problem = subscriptions_get.sync(number, client=client)
        assert isinstance(problem, models.ProblemDetails) and problem.status == HTTPStatus.NOT_FOUND, problem


def main() -> None:
    """Generates the client and uses it."""
    description, base, callback = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(description), Path(folder))
        sys.path.insert(0, folder)
        use(base, callback)


if __name__ == "__main__":
    main()

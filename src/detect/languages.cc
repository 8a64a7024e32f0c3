// Further languages of the detector: Portuguese, Italian, Dutch, Polish, Turkish, Japanese, Korean, Arabic and Hindi. Smaller than
// the six of signs.cc: what an instruction to a model needs. Arabic words stand without article and joined prefixes (speech.cc
// takes them off); Korean, Turkish and Polish ones as stems; Hindi ones with their vowel signs.
#include <span>

#include "detect/signs.h"

namespace belljar::detect {
namespace {

constexpr Words kFurtherSigns[] = {
    {kDrop,
     "ignorem ignore esqueca esqueçam desconsidere desconsiderem despreze ignorare ignora ignorate dimentica dimenticate scorda "
     "tralascia "
     "trascura negeer negeert vergeet zignoruj* zapomnij* pomin* odrzuc* unut* "
     "無視 忘れ 破棄 忘却 무시* 잊어* 잊고 잊으* 잊어버리* 버려* 버리고 تجاهل تجاهلي تجاهلوا انس انسى اهمل अनदेखा अनदेखी भूल भूलकर भुला "
     "नज़रअंदाज़ "
     "नजरअंदाज"},
    {kEarlier,
     "anteriores todas tudo todos precedenti precedente tutte tutti tutto vorige eerdere voorgaande alle alles poprzedni* wszystk* "
     "wczesniejsz* onceki tum butun これまで 以前 今まで 前の すべて 全て 上記 先ほど 이전* 앞의 앞선 위의 모든 모두 지금까지 "
     "기존* سابقة سابق جميع كل "
     "पिछले पिछली पहले सभी सारे सारी सब"},
    {kEarlier | kYou,
     "seu sua seus suas teu tua tuo tuoi tue jouw uw jou twoj* twoje senin あなたの お前の 君の 너의 당신의 네 आपके आपकी अपने अपनी "
     "तुम्हारे"},
    {kYou, "voce jij あなた お前 貴方 너는 당신* 네가 너 أنت انت आप तुम तुम्हें आपको"},
    {kOrders,
     "instrucoes diretrizes ordens istruzioni regole ordini direttive indicazioni instructies opdrachten richtlijnen instrukcj* "
     "polecen* "
     "zasad* regul* talimat* kural* komutlar* yonerge* 指示 命令 規則 ルール 制約 設定 指針 지시* 명령* 규칙* 지침* 설정* 제한* "
     "تعليمات أوامر قواعد توجيهات "
     "निर्देश* आदेश* नियम*"},
    {kOrders | kPrompt, "プロンプト 프롬프트* prompty promptu istemi istem موجه प्रॉम्प्ट"},
    {kOffice,
     "システム 管理者 開発者 運営 시스템* 관리자* 개발자* نظام مدير مطور مسؤول सिस्टम प्रशासक administratora administratore "
     "sviluppatore desenvolvedor beheerder ontwikkelaar yonetici gelistirici"},
    {kSend,
     "envie enviem mande encaminhe publique poste invia inviate manda inoltra spedisci carica pubblica stuur verstuur wyslij* "
     "przeslij* przekaz* gonder* yukle 送信 送って 送れ 送り 転送 投稿 アップロード 공개하 보내* 전송* 업로드* 전달* أرسل ارسل "
     "أرسلها وأرسلها ارفع حول "
     "भेज* अपलोड"},
    {kSecret,
     "senha senhas chave chaves credenciais segredo segredos segreti segreta chiave chiavi wachtwoord* sleutel* geheim* hasl* "
     "klucz* "
     "tajn* sifre* parola* anahtar* gizli パスワード 秘密鍵 鍵 トークン 認証情報 機密 キー 비밀번호* 암호* 키를 키와 토큰* 비밀* "
     "자격* مرور مفتاح مفاتيح سرية سري بيانات "
     "पासवर्ड कुंजी गुप्त टोकन"},
    {kHaul,
     "historico conversa conversas caixa cronologia conversazione posta gesprek* mailbox rozmow* skrzynk* konusma* 会話 履歴 "
     "メール 受信箱 대화* 메일* 이메일* "
     "محادثة بريد رسائل बातचीत ईमेल इनबॉक्स"},
    {kReveal,
     "mostre mostra revele revela exiba imprima repita rivela mostrami stampa ripeti toon onthul herhaal ujawnij* pokaz* wypisz* "
     "powtorz* "
     "goster* yazdir* acikla 表示 出力 書き出 明かせ 開示 教えて 見せ 출력* 보여* 공개* 알려줘 반복* اعرض أظهر اكشف اطبع كرر दिखा* "
     "बताओ बताइए प्रकट"},
    {kModel,
     "assistente assistenti agente agenti modelo modello robo asystent* asistan* modeli エージェント モデル ボット アシスタント "
     "비서* 에이전트* 모델* 챗봇* "
     "어시스턴트* مساعد نموذج وكيل روبوت सहायक मॉडल एजेंट बॉट"},
    {kAi, "yapay sztuczn* inteligencia intelligenza kunstmatige 人工知能 言語モデル 生成ai 인공지능* 언어모델* الذكاء اصطناعي एआई"},
    {kLanguage, "linguagem lenguaje linguaggio taalmodel* jezykow* 언어 لغوي ذكي भाषा"},
    {kHide,
     "diga conte informe avise revele dire dica racconta informare avvisare vertel zeg vertellen meld mow* informuj* powiadamiaj* "
     "soyleme* soylemeden bildirme* haber 知らせ 報告 伝え 言わ 通知 明かさ 말하지 알리지 말하 알리* 보고* 언급* تخبر تقل تذكر "
     "बताए बताना बता बताओ"},
    {kNot,
     "nao sem nunca senza niente nulla geen zonder nooit bez nigdy ないで なく ず 決して せずに 一切 禁止 しない 하지 말고 마세요 "
     "마라 "
     "말라 않고 없이 절대 말아* لا دون بدون أبدا ولا नहीं मत बिना न"},
    {kPerson,
     "usuario utente utenti persona gebruiker* uzytkownik* kullanici* ユーザー 利用者 人間 誰にも 사용자* 유저* 아무에게도 주인* "
     "مستخدم أحد उपयोगकर्ता यूज़र "
     "किसी"},
    {kAct,
     "executem rode apague exclua instale baixe abra escreva adicione acrescente copie crie aprove aceite confirme "
     "recomende avalie responda faca clique "
     "esegui eseguite elimina installa scarica apri scrivi aggiungi cambia approva accetta conferma rispondi "
     "clicca "
     "voer verwijder installeer schrijf voeg maak verander gebruik keur accepteer bevestig antwoord klik "
     "uruchom* usun* skasuj* zainstaluj* pobierz* otworz* napisz* dodaj* skopiuj* zmien* uzyj* zatwierdz* odpowiedz* kliknij* "
     "calistir* indir ekle kopyala degistir kullan onayla tikla uygula "
     "実行 削除 消去 インストール ダウンロード 開いて 書き込 追加 コピー 変更 承認 クリック 宣伝 回答 答え 推薦 "
     "실행* 삭제* 설치* 다운로드* 열어* 쓰고 작성* 추가* 복사* 변경* 승인* 클릭* 결제* 답하* 추천* 대답* "
     "نفذ شغل احذف امسح ثبت حمل افتح اكتب أضف انسخ غير وافق اضغط اقرأ أجب चलाओ चलाएं चलाएँ हटा* मिटा* इंस्टॉल डाउनलोड खोलो खोलें लिखो "
     "लिखें जोड़ो "
     "जोड़ें बदलो करो"},
    {kTarget,
     "arquivo arquivos pasta comando comandos cartella comandi bestand* opdracht plik* polecenie dosya* komut* ファイル フォルダ "
     "データベース "
     "コマンド 파일* 폴더* 데이터베이스* 명령어* ملف ملفات أمر फ़ाइल* फाइल* फ़ोल्डर कमांड"},
    {kMust,
     "deve devem precisa devi dovete moet moeten musisz powin* malisin* zorunda ください なさい こと べき せよ 하세요 하라 "
     "하십시오 해라 해야 십시오 يجب "
     "عليك चाहिए ज़रूर करना"},
    {kReply,
     "resposta respostas resumo relatorio risposta riassunto rapporto antwoord samenvatting odpowied* podsumowan* yanit* cevap* "
     "ozet* "
     "要約 応答 回答 返答 レポート 요약* 답변* 응답* 보고서 إجابة رد ملخص उत्तर जवाब सारांश"},
    {kTalk,
     "injecao ataque* vulnerabilidade* iniezione attacco attaccante* aanval* atak* podatnos* saldiri* 攻撃 注入 脆弱性 "
     "インジェクション 공격* 주입* "
     "취약점* هجوم حقن ثغرة مهاجم हमला हमले इंजेक्शन"},
    {kRead,
     "lendo processando leggendo legge elabora leest verwerkt czytasz czyta okuyan okuyorsan 読んでいる 読む 読み取 処理 要約する "
     "解析 읽는* 읽고 읽* "
     "처리* 분석* يقرأ تقرأ يعالج पढ़ रहे पढ़ पढ़ने"},
    {kThis,
     "esta este isto questa questo pagina documento deze document tego dokument* stron* bunu 本書 この これ 以下 文書 ページ 이 "
     "글을 문서* "
     "페이지* 아래 هذا هذه صفحة यह इस इसे पृष्ठ दस्तावेज़ नीचे"},
    {kFollow,
     "siga obedeca cumpra faca obbedisci obbedite rispetta volg gehoorzaam wykonaj* postepuj* stosuj uygula uyun "
     "従って 従い 従え 従う 実行 따르* 따라* 수행* 복종* اتبع أطع نفذ पालन मानो मानें"},
    {kPretend,
     "finja imagine fingi immagina stel udawaj wyobraz davran ふりをして 演じ なりきって 척하* 가정하* 연기하* تظاهر تخيل नाटक "
     "मान"},
    {kLimits,
     "restricoes limites filtros limiti filtri restrizioni beperkingen ogranicz* sinir* 制限 制約 フィルター 제한* 제약* 필터* "
     "قيود حدود सीमा प्रतिबंध"},
    {kGot,
     "recebeu recebidas deram disse ricevuto detto dato gekregen gezegd otrzymal* dostal* aldigin verilen 与えられ 受け取 받은 "
     "받았* 주어진 أعطيت تلقيت "
     "मिले दिए"},
    {kApprove,
     "aprovado autorizado autorizou approvato autorizzato goedgekeurd zatwierdzon* onaylandi 承認 許可 승인* 허가* موافقة مصرح "
     "स्वीकृत अनुमति"},
    {kBefore, "antes voordat zanim 前に まず 最初に 전에 먼저 قبل أولا पहले"},
    {kNotice,
     "atencao aviso attenzione messaggio bericht uwaga notatka dikkat 注意 お知らせ 宛 에게 알림 주의 انتباه ملاحظة ध्यान सूचना"},
    {kTo, "ao aos voor aan dla へ 向け إلى के"},
    {kQuiet,
     "silenciosamente segreto segretamente stiekem stilletjes potajemnie gizlice こっそり 黙って 密かに 몰래 조용히 سرا चुपचाप चुपके"},
    {kOmit,
     "oculte esconda omita nascondi ometti verberg verzwijg ukryj* pomin* gizle 隠して 隠せ 隠し 숨겨* 숨기* أخف اخف छिपा* छुपा*"},
    {kWhen, "quando wanneer jesli gdy eger ise なら 場合 면 경우 إذا عندما अगर यदि जब"},
    {kNow, "agora adesso teraz simdi 今すぐ 直ちに 지금 당장 الآن अभी तुरंत"},
};

}  // namespace

std::span<const Words> words_of_further_languages() noexcept { return kFurtherSigns; }

}  // namespace belljar::detect
